//! The server's statistics: counted by the event loops, read by monitoring clients.
//!
//! ```text
//! Pipeline -> EventCounts -> LoopCounters (one per loop) \
//! Store::stats_now, /proc/self/task                        -> Reading -> metrics (Prometheus)
//! SlowLog, Clients                                       /            -> History -> live (JSON, one sample per second)
//!                                                            Totals  -> INFO, the only one that can be reset
//! ```
//!
//! A loop counts a batch of requests on its stack and adds the result to the counters once. Only the loop writes them,
//! so an addition is a load and a store, without a locked instruction.
//!
//! A request's latency is the time from the poller's report of the connection until the reply may be sent: the batch of
//! requests was executed, and is as durable as required. It includes the wait for other connections of the same turn,
//! and for the other requests of the pipeline. (A command's latency is its execution time only, as in Redis.) This
//! costs one clock reading per batch, which clients' idle times need in any case, and one per round of the loop.

mod commands;
mod counters;
mod cpu;
mod errors;
mod figures;
mod health;
mod histogram;
mod history;
pub(crate) mod latency;
mod live;
mod loops;
mod metrics;
pub(crate) mod plain_text;
mod reading;
mod sharing;
mod slowlog;
mod space;
mod totals;
mod trees;
mod unanswered;

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use hikv::Store;

pub(crate) use commands::CommandTotal;
pub(crate) use counters::BatchCounts;
pub(crate) use health::{Health, Status};
pub(crate) use histogram::Latencies;
pub(crate) use history::History;
pub(crate) use live::live;
pub(crate) use loops::{EventCounts, LoopCounters, Loops};
pub(crate) use metrics::{CONTENT_TYPE, exposition};
pub(crate) use reading::Reading;
pub(crate) use sharing::{SAMPLED, Threads};
pub(crate) use trees::{NamedTree, NamedTrees};
pub(crate) use unanswered::Unanswered;

use errors::ErrorCounts;
use figures::Figures;
use latency::Latency;
use slowlog::SlowLog;
use space::Space;
use totals::{Baseline, Totals};

/// The server's statistics.
pub(crate) struct Telemetry {
    pub(crate) started: Instant,
    pub(crate) loops: Loops,
    pub(crate) slowlog: SlowLog,
    pub(crate) latency: Latency,
    pub(crate) errors: ErrorCounts,
    pub(crate) space: Space,
    pub(crate) figures: Figures,
    /// Clients disconnected at `client-output-buffer-limit`.
    pub(crate) over_limit_count: AtomicU64,
    /// Caught panics.
    pub(crate) panics: AtomicU64,
    baseline: Baseline,
}

impl Telemetry {
    pub(crate) fn new(loops: Loops) -> Telemetry {
        Telemetry {
            started: Instant::now(),
            loops,
            slowlog: SlowLog::default(),
            latency: Latency::default(),
            errors: ErrorCounts::default(),
            space: Space::default(),
            figures: Figures::new(),
            over_limit_count: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            baseline: Baseline::default(),
        }
    }

    /// Returns the totals since the start, or since the last reset of `INFO`.
    pub(crate) fn totals(&self, store: &Store) -> Totals {
        Totals::of(&self.loops, store).since(&self.baseline)
    }

    /// Resets the counters of `INFO`.
    pub(crate) fn reset(&self, store: &Store) {
        self.baseline.set(Totals::of(&self.loops, store));
        self.errors.forget();
    }

    /// Returns commands, received bytes and sent bytes per second since the previous call.
    pub(crate) fn rates(&self, store: &Store) -> [f64; 3] {
        self.figures.rates(|| Totals::of(&self.loops, store))
    }

    /// Returns the number of changes of keys since the start.
    pub(crate) fn change_count(&self) -> u64 {
        self.loops.change_count()
    }
}
