//! The report of each workload.

use std::fmt;

use hikv::pool::{PoolFigures, Sampled};
use serde::Serialize;

use crate::bounds::Bound;
use crate::pass::{Latencies, Pace};
use crate::subject::Persists;
use crate::workload::Workload;

/// One workload's result: an object in JSON, one line under [`Row::HEADER`] as text.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The workload's name.
    pub workload: &'static str,
    /// Calling threads.
    pub threads: usize,
    /// Records loaded before.
    pub records: u64,
    /// Operations per second of all threads, in the pass that does not time single operations; a batch of keys counts
    /// as that many.
    pub ops_per_sec: f64,
    /// Operations of the throughput pass.
    pub operations: u64,
    /// The median latency. All percentiles are missing for a workload that was stopped before operations were timed.
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    pub p999_us: Option<f64>,
    /// The 99.99th percentile.
    pub p9999_us: Option<f64>,
    /// The longest latency, within the histogram's precision.
    pub max_us: Option<f64>,
    /// Wrong results, in both passes.
    pub errors: u64,
    /// Values that the throughput pass put.
    pub put_count: u64,
    /// Values that both passes put, including those that restore the records between and after them.
    #[serde(skip)]
    pub all_put_count: u64,
    /// Thread time per operation in the throughput pass.
    pub ns_per_op: f64,
    /// Time per operation of the same loop without a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<f64>,
    /// The machine's least time for the same operation, with the same flushes and fences, in the same loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<f64>,
    /// The operation's time divided by that bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_bound: Option<f64>,
    /// The 99.9th percentile of the bound's operations, each timed: where it is more than `bound_ns`, the machine was
    /// busy otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_p999_us: Option<f64>,
    /// The length of the throughput pass: shorter than requested if the records ran out.
    pub seconds: f64,
    /// Cache lines written back, if they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_lines_per_op: Option<f64>,
    /// Fences, if they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fences_per_op: Option<f64>,
    /// Changes that were not yet applied to the ordered index when the throughput pass ended, if an index is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_count: Option<u64>,
    /// The state of the pool when the throughput pass ended, if the calling threads were a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Box<PoolRow>>,
}

/// A pool's split and the samples that led to it.
#[derive(Clone, Debug, Serialize)]
pub struct PoolRow {
    /// Threads that served.
    pub serving: usize,
    /// Threads that applied changes.
    pub backend: usize,
    /// Windows since the run began.
    pub windows: u64,
    /// Gets of the last window: their number and mean time.
    pub get: SampleRow,
    /// Scans.
    pub scan: SampleRow,
    /// Writes, as they were served.
    pub write: SampleRow,
    /// Changes, as they were applied.
    pub apply: SampleRow,
    /// The number of updates among those changes.
    pub updates: u64,
    /// Changes that were queued at the window's end.
    pub queued: u64,
}

/// The samples of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct SampleRow {
    /// The number of samples.
    pub count: u64,
    /// The mean time, if any sample was timed.
    pub mean_ns: Option<f64>,
}

impl PoolRow {
    fn of(figures: &PoolFigures, ns_per_tick: Option<f64>) -> PoolRow {
        let window = figures.window;
        let sample = |sampled: Sampled| SampleRow {
            count: sampled.count,
            mean_ns: sampled.mean_ticks().zip(ns_per_tick).map(|(ticks, ns)| ticks * ns),
        };
        PoolRow {
            serving: figures.split.serving,
            backend: figures.split.backend,
            windows: figures.window_count,
            get: sample(window.gets),
            scan: sample(window.scans),
            write: sample(window.writes),
            apply: sample(window.applied),
            updates: window.updated_count,
            queued: window.queued_count,
        }
    }
}

impl Row {
    /// The columns of the text form.
    pub const HEADER: &'static str = "workload       threads    records       ops/s    p50 us    p99 us  p99.9 us p99.99 us    max us  errors   seconds  lines/op fences/op  queued   split   own ns  bound ns  x bound bound p99.9 us";

    pub(crate) fn of(workload: Workload, records: u64, measured: &Measured) -> Row {
        let Measured { threads, pace, latencies, errors, persists, queued_count, pool, .. } = measured;
        let percentile_us = |percent| latencies.as_ref().map(|latencies| latencies.percentile_us(percent));
        let per_operation = |count: u64| count as f64 / pace.operations.max(1) as f64;
        Row {
            workload: workload.name(),
            threads: *threads,
            records,
            ops_per_sec: pace.operations as f64 / pace.elapsed.as_secs_f64(),
            operations: pace.operations,
            p50_us: percentile_us(50.0),
            p99_us: percentile_us(99.0),
            p999_us: percentile_us(99.9),
            p9999_us: percentile_us(99.99),
            max_us: percentile_us(100.0),
            errors: *errors,
            put_count: measured.put_count,
            all_put_count: measured.all_put_count,
            ns_per_op: pace.ns_each(*threads),
            own_ns: None,
            bound_ns: None,
            times_bound: None,
            bound_p999_us: None,
            seconds: pace.elapsed.as_secs_f64(),
            flushed_lines_per_op: persists.map(|persists| per_operation(persists.flushed_line_count)),
            fences_per_op: persists.map(|persists| per_operation(persists.fence_count)),
            queued_count: *queued_count,
            pool: pool.map(|figures| Box::new(PoolRow::of(&figures, latencies.as_ref().map(Latencies::ns_per_tick)))),
        }
    }

    /// Adds the loop's own time and the machine's bound.
    pub(crate) fn beside(self, own_ns: Option<f64>, bound: Option<Bound>) -> Row {
        let (bound_ns, bound_p999_us) = (bound.map(|bound| bound.ns), bound.map(|bound| bound.p999_us));
        let times_bound = bound_ns.map(|ns| self.ns_per_op / ns);
        Row { own_ns, bound_ns, times_bound, bound_p999_us, ..self }
    }
}

/// The parts of a [`Row`] as the passes deliver them.
pub(crate) struct Measured {
    pub(crate) threads: usize,
    pub(crate) pace: Pace,
    /// The latencies of the second pass, if it ran.
    pub(crate) latencies: Option<Latencies>,
    pub(crate) errors: u64,
    pub(crate) put_count: u64,
    pub(crate) all_put_count: u64,
    /// Flushes and fences of the throughput pass.
    pub(crate) persists: Option<Persists>,
    /// Queued changes at its end.
    pub(crate) queued_count: Option<u64>,
    /// The pool's state at its end.
    pub(crate) pool: Option<PoolFigures>,
}

impl Measured {
    /// Creates the parts for a throughput pass of this many threads.
    pub(crate) fn of(threads: usize, pace: Pace) -> Measured {
        Measured {
            threads,
            pace,
            latencies: None,
            errors: 0,
            put_count: 0,
            all_put_count: 0,
            persists: None,
            queued_count: None,
            pool: None,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { workload, threads, records, ops_per_sec, errors, seconds, .. } = self;
        write!(f, "{workload:<14} {threads:>7} {records:>10} {ops_per_sec:>11.0}")?;
        let latencies = [self.p50_us, self.p99_us, self.p999_us, self.p9999_us, self.max_us];
        latencies.into_iter().try_for_each(|us| figure(f, us.map(|us| format!("{us:.2}")), 9))?;
        write!(f, " {errors:>7} {seconds:>9.2}")?;
        for per_operation in [self.flushed_lines_per_op, self.fences_per_op] {
            figure(f, per_operation.map(|count| format!("{count:.2}")), 9)?;
        }
        figure(f, self.queued_count.map(|count| count.to_string()), 7)?;
        let split = self.pool.as_deref().map(|PoolRow { serving, backend, .. }| format!("{serving}-{backend}"));
        figure(f, split, 7)?;
        figure(f, self.own_ns.map(|ns| format!("{ns:.0}")), 8)?;
        figure(f, self.bound_ns.map(|ns| format!("{ns:.0}")), 9)?;
        figure(f, self.times_bound.map(|times| format!("{times:.2}")), 8)?;
        figure(f, self.bound_p999_us.map(|us| format!("{us:.2}")), 14)
    }
}

/// Writes a column of this width; an unknown figure is a dash.
fn figure(f: &mut fmt::Formatter<'_>, figure: Option<String>, width: usize) -> fmt::Result {
    write!(f, " {:>width$}", figure.as_deref().unwrap_or("-"))
}
