//! What one event loop has executed, by command, as `INFO commandstats` and `LATENCY HISTOGRAM` show it.
//!
//! A command's calls and their time are those of the histogram, so that counting all three is two additions.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::{Histogram, Latencies, add};
use crate::table;

/// Written by the loop alone; a place for each entry of the table.
pub(crate) struct CommandCounters(Box<[Counter]>);

#[derive(Default)]
struct Counter {
    /// There from the first call on: most commands are never asked for.
    latencies: OnceLock<Box<Histogram>>,
    rejected: AtomicU64,
    failed: AtomicU64,
}

/// The sums over all loops of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandTotal {
    /// Of the calls; none before the first.
    latencies: Option<Latencies>,
    /// Refused before they were executed.
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
    /// Takes in `count` requests for command number `number`, each of which took this long.
    #[inline]
    pub(crate) fn note(&self, number: usize, count: u64, each: Duration) {
        self.0[number].latencies.get_or_init(Box::default).note(each, count);
    }

    /// The last of them was answered with an error.
    pub(crate) fn note_failed(&self, number: usize) {
        add(&self.0[number].failed, 1);
    }

    pub(crate) fn note_rejected(&self, number: usize) {
        add(&self.0[number].rejected, 1);
    }

    /// Adds what was counted to `sums`, which has a place for each entry of the table.
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
    /// How long its calls took, if there were any.
    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        self.latencies.as_ref().filter(|latencies| latencies.count() > 0)
    }

    /// Whether nobody asked for it.
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
