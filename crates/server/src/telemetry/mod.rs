//! What the server does, in numbers: counted by the event loops, read by monitoring clients.
//!
//! ```text
//! Pipeline -> Tally -> LoopCounters (each loop its own)  \
//! Store::stats_now, /proc/self/task                        -> Reading -> metrics (Prometheus)
//! SlowLog, Clients                                       /            -> History -> live (JSON, a second each)
//!                                                            Totals  -> INFO, which alone can begin to count anew
//! ```
//!
//! A loop counts a batch of requests in its own stack frame and adds that to the counters once. Only the loop writes
//! them, so an addition is a load and a store, without a locked instruction.
//!
//! A request's latency is the time from when the poller reported the connection to when the reply might be sent: the batch of requests was
//! executed, and is as durable as it must be. The wait for other connections of the same turn, and for the rest of the pipeline, is part of
//! it. (A command's latency is what its execution alone took, as in Redis.) That costs one reading of the clock a batch, which clients'
//! idle times need in any case, and one for each round of the loop.

mod commands;
mod counters;
mod cpu;
mod errors;
mod figures;
mod health;
mod histogram;
mod history;
mod kind;
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
mod unanswered;

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use hikv::Store;

pub(crate) use commands::{CommandCounters, CommandTotal};
pub(crate) use counters::BatchCounts;
pub(crate) use health::{Health, Status};
pub(crate) use histogram::Latencies;
pub(crate) use history::History;
pub(crate) use kind::Kind;
pub(crate) use live::live;
pub(crate) use loops::{LoopCounters, Loops, Tally};
pub(crate) use metrics::{CONTENT_TYPE, exposition};
pub(crate) use reading::Reading;
pub(crate) use sharing::{SAMPLED, Threads};
pub(crate) use unanswered::Unanswered;

use errors::ErrorCounts;
use figures::Figures;
use latency::Latency;
use slowlog::SlowLog;
use space::Space;
use totals::{Baseline, Totals};

/// What the server counts and keeps to be told.
pub(crate) struct Telemetry {
    pub(crate) started: Instant,
    pub(crate) loops: Loops,
    pub(crate) slowlog: SlowLog,
    pub(crate) latency: Latency,
    pub(crate) errors: ErrorCounts,
    pub(crate) space: Space,
    pub(crate) figures: Figures,
    /// Clients that were disconnected at `client-output-buffer-limit`.
    pub(crate) over_limit_count: AtomicU64,
    /// Panics that were caught.
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

    /// What was counted since the start, or since `INFO` began to count anew.
    pub(crate) fn totals(&self, store: &Store) -> Totals {
        Totals::of(&self.loops, store).since(&self.baseline)
    }

    /// `INFO` counts from zero from now on.
    pub(crate) fn reset(&self, store: &Store) {
        self.baseline.set(Totals::of(&self.loops, store));
        self.errors.forget();
    }

    /// Commands, and bytes that came and went, in a second: from one question to the next.
    pub(crate) fn rates(&self, store: &Store) -> [f64; 3] {
        self.figures.rates(|| Totals::of(&self.loops, store))
    }

    /// Changes of keys since the start.
    pub(crate) fn change_count(&self) -> u64 {
        self.loops.change_count()
    }
}
