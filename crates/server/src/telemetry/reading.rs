//! Everything that is watched, at one moment.

use std::time::{Duration, Instant};

use hikv::Stats;

use super::counters::Counted;
use super::cpu::{self, Role};
use super::health::Health;
use crate::shared::{Shared, Tally};

#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) uptime: Duration,
    pub(crate) health: Health,
    pub(crate) clients: usize,
    pub(crate) refused_clients: u64,
    /// Of published messages and the like that wait for event loops.
    pub(crate) messages_waiting_bytes: usize,
    pub(crate) totals: Tally,
    pub(crate) counted: Counted,
    /// Requests that were slow, those among them that the log has forgotten.
    pub(crate) slow_count: u64,
    pub(crate) cpu: [Duration; Role::COUNT],
    pub(crate) stats: Stats,
}

impl Reading {
    /// Reads without waiting for anything but locks that are held briefly.
    ///
    /// # Errors
    /// In a forked child.
    pub(crate) fn of(shared: &Shared) -> Result<Reading, hikv::Error> {
        let stats = shared.store.stats_now()?;
        let serving: Vec<i32> = shared.loops.iter().map(|counters| counters.thread()).collect();
        Ok(Reading {
            at: Instant::now(),
            uptime: shared.started.elapsed(),
            health: Health::of(shared, &stats),
            clients: shared.clients(),
            refused_clients: shared.refused_connections(),
            messages_waiting_bytes: shared.mail.waiting_bytes(),
            totals: shared.totals(),
            counted: shared.counted(),
            slow_count: shared.slowlog.total(),
            cpu: cpu::times(&serving),
            stats,
        })
    }
}
