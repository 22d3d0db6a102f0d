//! What one event loop has executed, by command, as `INFO commandstats` shows it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::add;
use crate::table;

/// Written by the loop alone; a place for each entry of the table.
pub(crate) struct CommandCounters(Box<[Counter]>);

#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    took_ns: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
}

/// The sums over all loops of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandTotal {
    pub(crate) calls: u64,
    pub(crate) took_ns: u64,
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
    /// Takes in `count` requests for command number `number`, which were executed in this time together.
    #[inline]
    pub(crate) fn note(&self, number: usize, count: u64, took: Duration) {
        add(&self.0[number].calls, count);
        add(&self.0[number].took_ns, took.as_nanos() as u64);
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
            sum.calls += counter.calls.load(Ordering::Relaxed);
            sum.took_ns += counter.took_ns.load(Ordering::Relaxed);
            sum.rejected += counter.rejected.load(Ordering::Relaxed);
            sum.failed += counter.failed.load(Ordering::Relaxed);
        }
    }
}

impl CommandTotal {
    pub(super) fn since(self, base: CommandTotal) -> CommandTotal {
        CommandTotal {
            calls: self.calls - base.calls,
            took_ns: self.took_ns - base.took_ns,
            rejected: self.rejected - base.rejected,
            failed: self.failed - base.failed,
        }
    }
}
