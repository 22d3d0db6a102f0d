//! A run: load the records, then measure one workload after the other on them.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hikv::Error;
use hikv::pool::{Kind, Plan, Pool};

use crate::client::{Client, Shape};
use crate::pass::{Latencies, Pace, Until, latency, throughput, together};
use crate::pooled::{Queues, pooled};
use crate::report::{Measured, Row};
use crate::scans;
use crate::streams::{Delete, Insert, Load, Mix, Seat, Steady, Stream, Ycsb, batch, on_any, scan};
use crate::subject::{Persists, Subject};
use crate::workload::Workload;

/// The most records of a run: numbers above tell whose and of what kind a record is.
pub const RECORDS_MAX: u64 = 1 << 40;
/// The most threads of a run.
pub const THREADS_MAX: usize = 1 << 16;

/// What a run measures.
#[derive(Clone, Debug)]
pub struct Config {
    /// Measured in this order.
    pub workloads: Vec<Workload>,
    /// Loaded before; at least one, at most [`RECORDS_MAX`].
    pub records: u64,
    /// How long each pass lasts at most.
    pub pass: Duration,
    /// Calling threads; at least one, at most [`THREADS_MAX`].
    pub threads: usize,
    /// Length of each key, at least [`KEY_BYTES_MIN`](crate::KEY_BYTES_MIN) more than `shared_bytes`.
    pub key_bytes: usize,
    /// Has the calling threads apply what they leave in queues as well, by this plan. Without it they only serve, and the subject has threads
    /// of its own for that.
    pub plan: Option<Plan>,
    /// Keep order for workloads that need none, too.
    pub keeps_order: bool,
    /// How many bytes all keys begin with alike.
    pub shared_bytes: usize,
    /// Length of each value, at least [`VALUE_BYTES_MIN`](crate::VALUE_BYTES_MIN).
    pub value_bytes: usize,
}

/// What a run has to say while it goes on.
#[derive(Clone, Debug)]
pub enum Event {
    /// All records are in the store.
    Loaded {
        /// How many there are.
        records: u64,
        /// How long it took.
        elapsed: Duration,
    },
    /// A workload was measured.
    Measured(Row),
}

/// Loads the records of `config` into `subject`, which is empty, measures each workload, and removes what the
/// workloads added. The run ends early when `report` says so, or within a workload, which is then not reported, when
/// `stop` becomes true.
///
/// # Errors
/// As the store says. Wrong values are no error here: they are counted in the rows.
pub fn run<S: Subject>(
    subject: &S,
    config: &Config,
    stop: &(dyn Fn() -> bool + Sync),
    mut report: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<(), Error> {
    let pool = config.plan.map(|plan| Pool::new(Queues(subject), config.threads, plan));
    let run = Run { subject, config, stop, pool: pool.as_ref() };
    let loaded = run.load()?;
    let mut flow = report(Event::Loaded { records: loaded.operations, elapsed: loaded.elapsed });
    for &workload in &config.workloads {
        if flow.is_break() || stop() {
            break;
        }
        let measured = run.prepare(workload).and_then(|()| run.measure(workload))?;
        if !stop() {
            flow = report(Event::Measured(Row::of(workload, config.records, &measured)));
        }
    }
    Ok(())
}

struct Run<'a, S> {
    subject: &'a S,
    config: &'a Config,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// One for all workloads: a workload begins with the split that the one before it ended with.
    pool: Option<&'a Pool<Queues<'a, S>>>,
}

impl<'a, S: Subject> Run<'a, S> {
    fn load(&self) -> Result<Pace, Error> {
        throughput(&mut self.streams(Load::new), self.until(Duration::MAX))
    }

    /// The order of ordered workloads is there before, but where its making is measured.
    fn prepare(&self, workload: Workload) -> Result<(), Error> {
        match (self.config.keeps_order || workload.is_ordered()) && workload != Workload::Rebuild {
            true => self.subject.put_in_order(),
            false => Ok(()),
        }
    }

    fn measure(&self, workload: Workload) -> Result<Measured, Error> {
        match workload {
            Workload::Get => self.passes(|seat| Steady::new(&seat, Kind::Get, on_any(Client::get_into))),
            Workload::GetOwned => self.passes(|seat| Steady::new(&seat, Kind::Get, on_any(Client::get_owned))),
            Workload::GetWith => self.passes(|seat| Steady::new(&seat, Kind::Get, on_any(Client::get_with))),
            Workload::Miss => self.passes(|seat| Steady::new(&seat, Kind::Get, on_any(Client::miss))),
            Workload::MultiGet => self.passes(|seat| Steady::new(&seat, Kind::Get, batch)),
            Workload::Insert | Workload::InsertOrdered => self.passes(|seat| Insert::new(&seat)),
            Workload::Update | Workload::UpdateOrdered => {
                self.passes(|seat| Steady::new(&seat, Kind::Write, on_any(Client::put)))
            }
            Workload::Delete | Workload::DeleteOrdered => self.passes(Delete::new),
            Workload::Rebuild => self.rebuild(),
            Workload::Scan => self.passes(|seat| Steady::new(&seat, Kind::Scan, scan(seat.shape))),
            Workload::YcsbA => self.passes(|seat| Ycsb::new(&seat, Mix::A)),
            Workload::YcsbB => self.passes(|seat| Ycsb::new(&seat, Mix::B)),
            Workload::YcsbC => self.passes(|seat| Ycsb::new(&seat, Mix::C)),
            Workload::YcsbD => self.passes(|seat| Ycsb::new(&seat, Mix::D)),
            Workload::YcsbE => self.passes(|seat| Ycsb::new(&seat, Mix::E)),
            Workload::YcsbF => self.passes(|seat| Ycsb::new(&seat, Mix::F)),
        }
    }

    /// One build on all of the store's background threads; then everything is read in order.
    fn rebuild(&self) -> Result<Measured, Error> {
        let start = Instant::now();
        self.subject.put_in_order()?;
        let pace = Pace { operations: self.config.records, elapsed: start.elapsed() };
        let right = scans::count_right(self.subject, self.shape())?;
        Ok(Measured {
            threads: 1,
            pace,
            latencies: Latencies::of_one(pace.elapsed),
            errors: self.config.records.abs_diff(right),
            persists: None,
            queued_count: None,
            pool: None,
        })
    }

    fn passes<T: Stream>(&self, stream: impl Fn(Seat<'a, S>) -> T) -> Result<Measured, Error> {
        let mut streams = self.streams(stream);
        let until = self.until(self.config.pass);
        let before = self.subject.persists();
        let pace = self.throughput(&mut streams, until)?;
        let queued_count = self.subject.queued_count();
        let persists = self.persists_since(before);
        together(&mut streams, Stream::rewind)?;
        let pool = self.pool.map(Pool::figures);
        let latencies = self.latency(&mut streams, until)?;
        together(&mut streams, Stream::restore)?;
        let errors = streams.iter().map(Stream::errors).sum();
        Ok(Measured { threads: streams.len(), pace, latencies, errors, persists, queued_count, pool })
    }

    fn throughput(&self, streams: &mut [impl Stream], until: Until<'_>) -> Result<Pace, Error> {
        match self.pool {
            Some(pool) => throughput(&mut pooled(pool, streams, &AtomicBool::new(false)), until),
            None => throughput(streams, until),
        }
    }

    fn latency(&self, streams: &mut [impl Stream], until: Until<'_>) -> Result<Latencies, Error> {
        match self.pool {
            Some(pool) => latency(&mut pooled(pool, streams, &AtomicBool::new(false)), until),
            None => latency(streams, until),
        }
    }

    fn persists_since(&self, before: Option<Persists>) -> Option<Persists> {
        let (before, after) = (before?, self.subject.persists()?);
        Some(Persists {
            flushed_line_count: after.flushed_line_count - before.flushed_line_count,
            fence_count: after.fence_count - before.fence_count,
        })
    }

    fn streams<T: Stream>(&self, stream: impl Fn(Seat<'a, S>) -> T) -> Vec<T> {
        let (shape, threads) = (self.shape(), self.config.threads);
        (0..threads).map(|thread| stream(Seat { subject: self.subject, shape, thread, threads })).collect()
    }

    fn shape(&self) -> Shape {
        let Config { records, key_bytes, shared_bytes, value_bytes, .. } = *self.config;
        Shape { records, key_bytes, shared_bytes, value_bytes }
    }

    fn until(&self, limit: Duration) -> Until<'a> {
        Until { limit, stop: self.stop }
    }
}
