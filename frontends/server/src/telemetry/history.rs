//! Samples of the last minutes, one per second, so that the live page shows past values when it is opened.

use std::collections::{BTreeMap, VecDeque};

use hikv::JournalStats;
use serde::Serialize;

use super::{Reading, SAMPLED};

/// Five minutes: the width of the page's charts.
const SAMPLE_COUNT_MAX: usize = 300;

/// Rates between two readings, and other values at the later one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Since the start of the server, by a monotonic clock.
    uptime_ms: u64,
    /// By kind, like all arrays here.
    requests_per_second: Vec<f64>,
    errors_per_second: Vec<f64>,
    /// `None` without requests.
    p50_us: Vec<Option<f64>>,
    p99_us: Vec<Option<f64>>,
    p999_us: Vec<Option<f64>>,
    hits_per_second: f64,
    misses_per_second: f64,
    input_bytes_per_second: f64,
    output_bytes_per_second: f64,
    clients: usize,
    /// Changes that wait to be applied to the ordered index.
    queued_count: u64,
    /// Changes that were applied to the ordered index.
    applied_per_second: f64,
    /// Loops that only serve, loops that also apply changes, and the store's threads that are awake.
    serving_loops: usize,
    backend_loops: usize,
    awake_workers: u64,
    /// For the last window of operations, in the order of [`super::SAMPLED`]: the count and mean duration of each.
    sampled_count: [u64; SAMPLED.len()],
    sampled_us: [Option<f64>; SAMPLED.len()],
    /// Cores in use, by role.
    cpu_cores: Vec<f64>,
    items: u64,
    region_bytes: u64,
    live_bytes: u64,
    dram_bytes: u64,
    order_dram_bytes: u64,
    /// Engine-specific figures.
    figures: BTreeMap<&'static str, f64>,
    kept_bytes: u64,
    log_syncs_per_second: Option<f64>,
    log_bytes_per_second: Option<f64>,
}

#[derive(Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    last: Option<Reading>,
    next_number: u64,
}

impl History {
    /// Adds the sample since the previous reading.
    pub(crate) fn note(&mut self, reading: Reading) {
        if let Some(last) = &self.last {
            self.next_number += 1;
            self.samples.push_back(Sample::between(last, &reading, self.next_number));
            if self.samples.len() > SAMPLE_COUNT_MAX {
                self.samples.pop_front();
            }
        }
        self.last = Some(reading);
    }

    /// Returns the samples after number `after`, oldest first.
    pub(crate) fn after(&self, after: u64) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.number > after)
    }
}

impl Sample {
    fn between(then: &Reading, now: &Reading, number: u64) -> Sample {
        let seconds = (now.at - then.at).as_secs_f64().max(1e-3);
        // A counter may have been reset by CONFIG RESETSTAT.
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let journals = now.stats.journal.zip(then.stats.journal);
        let log_rate = |read: fn(&JournalStats) -> u64| journals.map(|(now, then)| rate(read(&now), read(&then)));
        let pairs = now.counted.latencies.iter().zip(&then.counted.latencies);
        let latencies: Vec<_> = pairs.map(|(now, then)| now.since(then)).collect();
        let quantile = |rank| -> Vec<Option<f64>> {
            let us = |took: std::time::Duration| took.as_nanos() as f64 / 1e3;
            latencies.iter().map(|latencies| latencies.quantile(rank).map(us)).collect()
        };
        let errors = now.counted.errors.iter().zip(&then.counted.errors);
        let cpu = now.cpu.iter().zip(&then.cpu);
        let [serving_loops, backend_loops] = now.threads.loops();
        Sample {
            number,
            uptime_ms: now.uptime.as_millis() as u64,
            requests_per_second: latencies.iter().map(|latencies| latencies.count() as f64 / seconds).collect(),
            errors_per_second: errors.map(|(now, then)| rate(*now, *then)).collect(),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            hits_per_second: rate(now.totals.hits, then.totals.hits),
            misses_per_second: rate(now.totals.misses, then.totals.misses),
            input_bytes_per_second: rate(now.counted.input_bytes, then.counted.input_bytes),
            output_bytes_per_second: rate(now.counted.output_bytes, then.counted.output_bytes),
            clients: now.clients,
            queued_count: now.stats.queued_count + now.stats.delta_count,
            applied_per_second: rate(now.stats.order_applied_count, then.stats.order_applied_count),
            serving_loops,
            backend_loops,
            awake_workers: now.stats.awake_worker_count,
            sampled_count: now.threads.counts(),
            sampled_us: now.threads.means_us(),
            cpu_cores: cpu.map(|(now, then)| now.saturating_sub(*then).as_secs_f64() / seconds).collect(),
            items: now.stats.items,
            region_bytes: now.stats.region_bytes,
            live_bytes: now.stats.live_bytes,
            dram_bytes: now.stats.dram_bytes,
            order_dram_bytes: now.stats.order_dram_bytes,
            figures: now.stats.figures.iter().map(|figure| (figure.name, figure.value)).collect(),
            kept_bytes: now.stats.kept_bytes,
            log_syncs_per_second: log_rate(|journal| journal.log_sync_count),
            log_bytes_per_second: log_rate(|journal| journal.log_written_bytes),
        }
    }
}
