//! Event loops as threads of a pool: they serve clients, and apply changes to the order of keys (HiKV paper, section
//! 3.2.2; `hikv::pool`). `connections/order_maintenance.rs` describes how a loop does both without delaying its
//! clients.

use std::time::Instant;

use hikv::pool::{Plan, Sharing, Split, Work};
use hikv::{Error, Store};

use crate::Config;

/// The event loops of a server.
pub(crate) type Pool = hikv::pool::Pool<Queues>;

/// The queues of a store, measured in nanoseconds.
#[derive(Debug)]
pub(crate) struct Queues {
    store: Store,
    began: Instant,
    /// The store leaves its changes to the loops.
    applies: bool,
}

impl Queues {
    /// Records that the loops have ended: from now on only the store's own threads apply changes.
    pub(crate) fn leave(&self) {
        if self.applies {
            // In a forked child there is no store.
            let _ = self.store.background().set_callers_apply(false);
        }
    }
}

/// A server that ends before it has served, or by a panic, must not leave changes to loops that no longer exist.
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
        self.store.background().apply_queued()
    }

    fn queued_count(&self) -> u64 {
        self.store.background().queue_stats().map_or(0, |stats| stats.queued_count)
    }

    fn applied(&self) -> [u64; 2] {
        self.store.background().queue_stats().map_or([0; 2], |stats| [stats.applied_count, stats.updated_count])
    }
}

/// Returns the number of a server's loops: in a fixed split, the threads that are not the store's.
pub(crate) fn loop_count(config: &Config) -> usize {
    config.split.fixed().map_or(config.threads, |split| split.serving).max(1)
}

/// Returns whether loops also apply changes. The backend of a fixed split consists of the store's threads.
pub(crate) fn is_adaptive(sharing: Sharing) -> bool {
    matches!(sharing, Sharing::Pool(Plan::Adaptive(_)))
}

/// Creates the pool of a server's loops. Loops that do not apply changes are still sampled, for monitoring.
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
        store.background().set_callers_apply(true)?;
    }
    Ok(Pool::new(Queues { store: store.clone(), began: Instant::now(), applies }, loop_count, plan))
}
