//! The totals of `INFO`: all counts since the start, minus those at the last `CONFIG RESETSTAT`.
//!
//! The counters themselves never decrease, because a reader of [`super::metrics`] would take that for a restart.

use hikv::Store;
use parking_lot::Mutex;

use super::commands::CommandTotal;
use super::loops::{Loops, Tally};

/// All counts at one moment, or the difference between two.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) tally: Tally,
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
            tally: loops.totals(),
            refused_clients: loops.refused_connections(),
            input_bytes: counted.input_bytes,
            output_bytes: counted.output_bytes,
            expired: store.stats().reaped_count,
            commands: loops.commands(),
        }
    }

    pub(super) fn since(self, baseline: &Baseline) -> Totals {
        let base = baseline.0.lock();
        let (tally, before) = (self.tally, base.tally);
        let commands = self.commands.into_iter().enumerate();
        Totals {
            tally: Tally {
                connections: tally.connections - before.connections,
                commands: tally.commands - before.commands,
                hits: tally.hits - before.hits,
                misses: tally.misses - before.misses,
                errors: tally.errors - before.errors,
                ..tally
            },
            refused_clients: self.refused_clients - base.refused_clients,
            input_bytes: self.input_bytes - base.input_bytes,
            output_bytes: self.output_bytes - base.output_bytes,
            expired: self.expired - base.expired,
            commands: commands.map(|(number, total)| total.since(base.commands.get(number))).collect(),
        }
    }
}
