//! Order maintenance on an event loop, between its clients' requests.
//!
//! A connection stays with one loop, so a loop that only applied changes would delay its own clients. Therefore:
//! 1. A loop with the backend role also serves: after each round of requests it applies one group of at most sixteen
//!    changes, and polls the sockets again without waiting.
//! 2. A loop without requests applies changes whatever its role, one group between two polls, and sleeps when the
//!    queues are empty.
//! 3. A sleeping loop has no role: it releases the role first, for a loop that is awake.
//! 4. The store's own threads do everything that takes longer than a group (building the order, freeing space, expiry,
//!    compaction), and help when a queue is more than half full.
//!
//! So a client waits for at most one group, some ten microseconds, however many changes are queued: by rules 1 and 2
//! the sockets are polled between two groups, and [`hikv::Background::apply_queued`] bounds a group's length.
//!
//! # No change is left behind
//! A loop whose clients have written has queued the changes, and finds them before sleeping. The loop sleeps only after
//! the changes are applied, by this loop or another thread, or after [`FRUITLESS_MAX`] failed attempts since the last
//! wake-up. In that case another thread is applying the changes but does not progress; then that thread, the next loop
//! that wakes, a scan, or a worker (once the queue is half full) applies them. A loop that executes a long command in
//! the backend role keeps the role but blocks no queue: by rule 2 other loops apply the changes that they have written.

use std::time::Instant;

use hikv::pool::{Kind, Member, Role, Sampled, Work};

use crate::pool::Queues;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;

/// Attempts to apply queued changes that may fail in a row before the loop sleeps anyway.
const FRUITLESS_MAX: u32 = 64;

/// The kinds in the order of the loops' counters.
const KINDS: [Kind; 3] = [Kind::Get, Kind::Scan, Kind::Write];

/// A loop as a member of the thread pool.
pub(crate) struct OrderMaintenance<'s> {
    member: Member<'s, Queues>,
    counters: &'s LoopCounters,
    /// The counters before this round.
    before: [Sampled; KINDS.len()],
    /// The loop applies changes; otherwise it only reports samples.
    applies: bool,
    fruitless_count: u32,
}

impl<'s> OrderMaintenance<'s> {
    /// Creates the maintenance of loop number `index`.
    pub(crate) fn of(shared: &'s Shared, index: usize) -> OrderMaintenance<'s> {
        let counters = &shared.telemetry.loops[index];
        OrderMaintenance {
            member: shared.pool.member(),
            counters,
            before: counters.served(),
            applies: crate::pool::is_adaptive(shared.split),
            fruitless_count: 0,
        }
    }

    /// Rule 1: called after a round of requests that began when the loop `woke`.
    pub(crate) fn end_round(&mut self, woke: Instant) {
        self.sample(woke);
        if self.applies && self.member.role() == Role::Apply && self.has_work() {
            self.apply();
        }
    }

    /// Returns whether rule 2 keeps the loop awake.
    pub(crate) fn has_work(&self) -> bool {
        self.applies && self.fruitless_count < FRUITLESS_MAX && self.member.pool().work().queued_count() > 0
    }

    /// Applies one group. If a group fails because memory is exhausted, the store drops the order, and callers that
    /// need it get an error.
    pub(crate) fn apply(&mut self) {
        let count = self.member.apply().unwrap_or(0);
        self.fruitless_count = if count > 0 { 0 } else { self.fruitless_count + 1 };
    }

    /// Rule 3. After it wakes, the loop tries again, whatever woke it.
    pub(crate) fn rest(&mut self) {
        self.member.rest();
        self.fruitless_count = 0;
    }

    /// Reports the served requests to the pool. The time of a round outside its commands (sockets, parsing) is divided
    /// among its requests, as work of the serving side.
    fn sample(&mut self, woke: Instant) {
        let now = self.counters.served();
        let new: [Sampled; KINDS.len()] = std::array::from_fn(|kind| since(now[kind], self.before[kind]));
        let count: u64 = new.iter().map(|sampled| sampled.count).sum();
        if count == 0 {
            return;
        }
        let spent_ns: u64 = new.iter().map(|sampled| sampled.ticks).sum();
        let other_ns = (woke.elapsed().as_nanos() as u64).saturating_sub(spent_ns) / count;
        for (kind, sampled) in KINDS.into_iter().zip(new).filter(|(_, sampled)| sampled.count > 0) {
            let ticks = sampled.ticks + other_ns * sampled.count;
            self.member.served(kind, Sampled { ticks, ..sampled });
        }
        self.before = now;
        self.fruitless_count = 0;
    }
}

fn since(now: Sampled, before: Sampled) -> Sampled {
    let [count, ticks] = [now.count - before.count, now.ticks - before.ticks];
    Sampled { count, timed_count: count, ticks }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hikv::pool::Sharing;
    use hikv::{Durability, Options};

    use super::*;
    use crate::{Config, Server, StopHandle, testing};

    fn put(shared: &Shared, count: u64) {
        let store = &shared.keyspace.store;
        store.ordered().and_then(|ordered| ordered.wait_until_ready(|_| {})).expect("order is kept");
        (0..count).for_each(|number| store.put(number.to_be_bytes(), "value").expect("it is put"));
    }

    fn queued_count(shared: &Shared) -> u64 {
        shared.pool.work().queued_count()
    }

    /// The loop with the role makes no progress, as in a long command.
    #[test]
    fn stalled_loop_leaves_no_queue_unserved() {
        let (server, _dir) = testing::server_with(Sharing::default());
        let shared = Arc::clone(server.shared());
        let [mut stalled, mut other] = [0, 1].map(|index| OrderMaintenance::of(&shared, index));
        assert_eq!([stalled.member.role(), other.member.role()], [Role::Apply, Role::Serve]);
        put(&shared, 100);
        other.end_round(Instant::now());
        assert_eq!(queued_count(&shared), 100, "the role is the other one's");
        while other.has_work() {
            other.apply();
        }
        assert_eq!(queued_count(&shared), 0, "with nothing to serve it applies");
        drop(stalled);
        assert_eq!(other.member.role(), Role::Apply, "the role of a loop that is gone is free");
    }

    #[test]
    fn round_in_role_applies_one_group() {
        let (server, _dir) = testing::server_with(Sharing::default());
        let shared = Arc::clone(server.shared());
        let mut order_maintenance = OrderMaintenance::of(&shared, 0);
        put(&shared, 100);
        order_maintenance.end_round(Instant::now());
        let left = queued_count(&shared);
        assert!((84..100).contains(&left), "sixteen at most, and one at least: {left} are left");
        order_maintenance.rest();
        assert_eq!(shared.pool.figures().backend_count, 0);
    }

    /// The server was bound and never ran.
    #[test]
    fn stopped_server_leaves_changes_to_store_threads() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Options::new().durability(Durability::Buffered).open(dir.path()).expect("it opens");
        let config = Config { addrs: vec!["127.0.0.1:0".into()], split: Sharing::default(), ..Config::default() };
        let server = Server::bind(store.clone(), config, StopHandle::new()).expect("a free port binds");
        put(server.shared(), 100);
        drop(server);
        let is_idle = |_| {
            std::thread::yield_now();
            store.background().queue_stats().expect("this process has opened it").queued_count == 0
        };
        assert!((0..10_000_000).any(is_idle));
    }

    /// As after a thread that blocked it for long; its next round has no requests.
    #[test]
    fn idle_loop_checks_again_after_sleep() {
        let (server, _dir) = testing::server_with(Sharing::default());
        let shared = Arc::clone(server.shared());
        let mut order_maintenance = OrderMaintenance::of(&shared, 0);
        (0..FRUITLESS_MAX).for_each(|_| order_maintenance.apply());
        put(&shared, 100);
        assert!(!order_maintenance.has_work(), "it goes to sleep");
        order_maintenance.rest();
        assert!(order_maintenance.has_work());
    }

    #[test]
    fn loops_with_worker_threads_apply_nothing() {
        let (server, _dir) = testing::server_with(Sharing::Beside);
        let shared = Arc::clone(server.shared());
        let mut order_maintenance = OrderMaintenance::of(&shared, 0);
        put(&shared, 100);
        order_maintenance.end_round(Instant::now());
        assert!(!order_maintenance.has_work() && queued_count(&shared) == 100);
    }
}
