//! One event loop's statistics by command, for `INFO commandstats` and `LATENCY HISTOGRAM`.
//!
//! The number and total time of a command's calls are taken from its histogram, so counting a call needs only two
//! additions.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::{Histogram, Latencies, add};
use command_table as table;

/// Written only by the loop; one element for each table entry.
pub(crate) struct CommandCounters(Box<[Counter]>);

#[derive(Default)]
struct Counter {
    /// Created at the first call, because most commands are never used.
    latencies: OnceLock<Box<Histogram>>,
    rejected: AtomicU64,
    failed: AtomicU64,
}

/// The sums over all loops for one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandTotal {
    /// Of the calls; `None` before the first.
    latencies: Option<Latencies>,
    /// Refused before execution.
    pub(crate) rejected: u64,
    /// Answered with an error.
    pub(crate) failed: u64,
}

impl Default for CommandCounters {
    fn default() -> CommandCounters {
        CommandCounters(table::entries().iter().map(|_| Counter::default()).collect())
    }
}

impl CommandCounters {
    /// Adds `count` requests of command number `number`, each with this duration.
    #[inline]
    pub(crate) fn note(&self, number: usize, count: u64, each: Duration) {
        self.0[number].latencies.get_or_init(Box::default).note(each, count);
    }

    /// Records that the last of them was answered with an error.
    pub(crate) fn note_failed(&self, number: usize) {
        add(&self.0[number].failed, 1);
    }

    pub(crate) fn note_rejected(&self, number: usize) {
        add(&self.0[number].rejected, 1);
    }

    /// Adds the counters to `sums`, which has one element for each table entry.
    pub(super) fn add_to(&self, sums: &mut [CommandTotal]) {
        for (counter, sum) in self.0.iter().zip(sums) {
            if let Some(latencies) = counter.latencies.get() {
                latencies.add_to(sum.latencies.get_or_insert_default());
            }
            sum.rejected += counter.rejected.load(Ordering::Relaxed);
            sum.failed += counter.failed.load(Ordering::Relaxed);
        }
    }
}

impl CommandTotal {
    /// Returns the latencies of its calls, if there were any.
    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        self.latencies.as_ref().filter(|latencies| latencies.count() > 0)
    }

    /// Returns whether it was never requested.
    pub(crate) fn is_zero(&self) -> bool {
        self.latencies().is_none() && self.rejected == 0 && self.failed == 0
    }

    pub(super) fn since(self, base: Option<&CommandTotal>) -> CommandTotal {
        let Some(base) = base else { return self };
        let earlier = base.latencies.as_ref();
        CommandTotal {
            latencies: self.latencies.map(|latencies| match earlier {
                Some(earlier) => latencies.since(earlier),
                None => latencies,
            }),
            rejected: self.rejected - base.rejected,
            failed: self.failed - base.failed,
        }
    }
}
