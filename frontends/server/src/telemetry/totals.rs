//! The totals of `INFO`: all counts since the start, minus those at the last `CONFIG RESETSTAT`.
//!
//! The counters themselves never decrease, because a reader of [`super::metrics`] would take that for a restart.

use hikv::Store;
use parking_lot::Mutex;

use super::commands::CommandTotal;
use super::loops::{EventCounts, Loops};

/// All counts at one moment, or the difference between two.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) event_counts: EventCounts,
    pub(crate) refused_clients: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) expired: u64,
    /// By command index.
    pub(crate) commands: Vec<CommandTotal>,
}

/// The counts at the last `CONFIG RESETSTAT`.
#[derive(Default)]
pub(super) struct Baseline(Mutex<Totals>);

impl Baseline {
    pub(super) fn set(&self, totals: Totals) {
        *self.0.lock() = totals;
    }
}

impl Totals {
    pub(super) fn of(loops: &Loops, store: &Store) -> Totals {
        let counted = loops.counted();
        Totals {
            event_counts: loops.totals(),
            refused_clients: loops.refused_connections(),
            input_bytes: counted.input_bytes,
            output_bytes: counted.output_bytes,
            expired: store.stats().reaped_count,
            commands: loops.commands(),
        }
    }

    pub(super) fn since(self, baseline: &Baseline) -> Totals {
        let base = baseline.0.lock();
        let (event_counts, before) = (self.event_counts, base.event_counts);
        let commands = self.commands.into_iter().enumerate();
        Totals {
            event_counts: EventCounts {
                connections: event_counts.connections - before.connections,
                commands: event_counts.commands - before.commands,
                hits: event_counts.hits - before.hits,
                misses: event_counts.misses - before.misses,
                errors: event_counts.errors - before.errors,
                ..event_counts
            },
            refused_clients: self.refused_clients - base.refused_clients,
            input_bytes: self.input_bytes - base.input_bytes,
            output_bytes: self.output_bytes - base.output_bytes,
            expired: self.expired - base.expired,
            commands: commands.map(|(number, total)| total.since(base.commands.get(number))).collect(),
        }
    }
}
