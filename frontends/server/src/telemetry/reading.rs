//! All monitored values at one moment.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hikv::Stats;

use super::Telemetry;
use super::counters::Counted;
use super::cpu::{self, Role};
use super::health::Health;
use super::loops::EventCounts;
use super::sharing::Threads;
use crate::shared::Shared;

#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) uptime: Duration,
    pub(crate) health: Health,
    pub(crate) clients: usize,
    pub(crate) refused_clients: u64,
    /// Published and similar messages that wait for event loops.
    pub(crate) messages_waiting_bytes: usize,
    /// Backlogs: clients' unread replies beyond those that each may have.
    pub(crate) unread_replies_bytes: usize,
    /// Clients disconnected to free memory for others' replies, and at their own limit.
    pub(crate) disconnected_counts: [u64; 2],
    pub(crate) totals: EventCounts,
    pub(crate) counted: Counted,
    /// Slow requests, including those that the log has dropped.
    pub(crate) slow_count: u64,
    pub(crate) panics: u64,
    pub(crate) cpu: [Duration; Role::COUNT],
    pub(crate) threads: Threads,
    pub(crate) stats: Stats,
    /// On the store's file system.
    pub(crate) disk_free_bytes: Option<u64>,
}

impl Reading {
    /// Takes a reading. It waits only for locks that are held briefly.
    ///
    /// # Errors
    /// In a forked child.
    pub(crate) fn of(shared: &Shared) -> Result<Reading, hikv::Error> {
        let stats = hikv::FrontEnd::of(&shared.keyspace.store).stats_now()?;
        let disk_free_bytes = shared.keyspace.store.disk_free_bytes();
        let Telemetry { loops, started, slowlog, .. } = &shared.telemetry;
        let serving: Vec<i32> = loops.iter().map(|counters| counters.thread()).collect();
        Ok(Reading {
            at: Instant::now(),
            uptime: started.elapsed(),
            health: Health::of(shared, &stats, disk_free_bytes),
            disk_free_bytes,
            clients: loops.clients(),
            refused_clients: loops.refused_connections(),
            messages_waiting_bytes: shared.mailboxes.waiting_bytes(),
            unread_replies_bytes: shared.backlogs.len_bytes(),
            disconnected_counts: [
                shared.backlogs.evicted_count(),
                shared.telemetry.over_limit_count.load(Ordering::Relaxed),
            ],
            totals: loops.totals(),
            counted: loops.counted(),
            slow_count: slowlog.total(),
            panics: shared.telemetry.panics.load(Ordering::Relaxed),
            cpu: cpu::times(&serving),
            threads: Threads::of(shared),
            stats,
        })
    }
}
