//! What `INFO` counts: everything since the start, less what was counted at the last `CONFIG RESETSTAT`.
//!
//! The counters themselves never go back, since a monitor that reads [`super::metrics`] takes that for a new start.

use parking_lot::Mutex;

use super::commands::CommandTotal;
use crate::shared::{Shared, Tally};
use crate::table;

/// All that counts, at one moment or from one to another.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) tally: Tally,
    pub(crate) refused_clients: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) expired: u64,
    /// By the number of the command.
    pub(crate) commands: Vec<CommandTotal>,
}

/// What was counted at the last `CONFIG RESETSTAT`.
#[derive(Default)]
pub(crate) struct Baseline(Mutex<Totals>);

impl Baseline {
    /// `INFO` counts from zero from now on.
    pub(crate) fn reset(&self, shared: &Shared) {
        *self.0.lock() = Totals::of(shared);
        shared.errors.forget();
    }

    pub(crate) fn totals(&self, shared: &Shared) -> Totals {
        Totals::of(shared).since(&self.0.lock())
    }
}

impl Totals {
    pub(super) fn of(shared: &Shared) -> Totals {
        let counted = shared.counted();
        let mut commands = vec![CommandTotal::default(); table::entries().len()];
        shared.loops.iter().for_each(|counters| counters.commands.add_to(&mut commands));
        Totals {
            tally: shared.totals(),
            refused_clients: shared.refused_connections(),
            input_bytes: counted.input_bytes,
            output_bytes: counted.output_bytes,
            expired: shared.store.stats().reaped_count,
            commands,
        }
    }

    fn since(self, base: &Totals) -> Totals {
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
