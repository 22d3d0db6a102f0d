//! Event loops as threads of a pool: they serve clients, and apply what writes leave for the order of keys (HiKV paper, section
//! 3.2.2; `hikv::pool`). How a loop does both, and no client waits for it: `connections/duty.rs`.

use std::time::Instant;

use hikv::pool::{Plan, Sharing, Split, Work};
use hikv::{Error, Store};

use crate::Config;

/// The event loops of a server.
pub(crate) type Pool = hikv::pool::Pool<Queues>;

/// The queues of a store, by a clock of nanoseconds.
#[derive(Debug)]
pub(crate) struct Queues {
    store: Store,
    began: Instant,
    /// The store leaves its changes to the loops.
    applies: bool,
}

impl Queues {
    /// The loops have ended: from now on nobody but the store's own threads applies.
    pub(crate) fn leave(&self) {
        if self.applies {
            // In a forked child there is no store.
            let _ = self.store.set_callers_apply(false);
        }
    }
}

/// A server that ends before it has served, or in a panic, leaves nothing to loops that are gone.
impl Drop for Queues {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Work for Queues {
    fn ticks(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn apply(&self) -> Result<u64, Error> {
        self.store.apply_queued()
    }

    fn queued_count(&self) -> u64 {
        self.store.queue_stats().map_or(0, |stats| stats.queued_count)
    }

    fn applied(&self) -> [u64; 2] {
        self.store.queue_stats().map_or([0; 2], |stats| [stats.applied_count, stats.updated_count])
    }
}

/// How many loops a server has: those of its threads that are not the store's by a fixed split.
pub(crate) fn loop_count(config: &Config) -> usize {
    config.split.fixed().map_or(config.threads, |split| split.serving).max(1)
}

/// Whether loops apply, too. A fixed split's backend is threads of the store.
pub(crate) fn is_adaptive(sharing: Sharing) -> bool {
    matches!(sharing, Sharing::Pool(Plan::Adaptive(_)))
}

/// The loops of a server, as `config` says. Where they do not apply they sample all the same, for monitors.
///
/// # Errors
/// In a forked child.
pub(crate) fn of_loops(store: &Store, config: &Config) -> Result<Pool, Error> {
    let loop_count = loop_count(config);
    let plan = match config.split {
        Sharing::Pool(plan @ Plan::Adaptive(_)) => plan,
        _ => Plan::Fixed(Split { serving: loop_count, backend: 0 }),
    };
    let applies = is_adaptive(config.split);
    if applies {
        store.set_callers_apply(true)?;
    }
    Ok(Pool::new(Queues { store: store.clone(), began: Instant::now(), applies }, loop_count, plan))
}
