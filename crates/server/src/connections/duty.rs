//! What a loop does for the order of keys, between its clients' requests.
//!
//! A connection stays with one loop, so a loop that did nothing but apply would let its own clients wait. Therefore
//! 1. a loop that has the backend's role serves, too: after each round of requests it applies one group, of sixteen changes at most, and
//!    looks at the sockets again without waiting;
//! 2. a loop that has nothing to serve applies, whatever its role is, one group between two looks at the sockets, and sleeps when nothing
//!    waits;
//! 3. a loop that sleeps has no role: it gives the role back before, for a loop that is awake;
//! 4. the store's own threads do what takes longer than a group (building the order, room, keys that expire, compaction), and help where a
//!    queue is more than half full.
//!
//! So a client waits for one group at most, some ten microseconds, whatever waits to be applied: by 1 and 2 there is a look at the
//! sockets between two groups, and a group's length is bounded by [`hikv::Store::apply_queued`].
//!
//! # No change is left behind
//! A loop whose clients have written finds the changes queued before sleeping: the loop queued them. It does not sleep until either the
//! changes are applied, by this loop or another thread, or [`FRUITLESS_MAX`] looks were in vain since the loop was awake: then a thread is
//! at them that does not get on, and that one, the next loop that wakes up, a scan, or a worker once the queue is half full, goes on. A
//! loop that is held up by a long command in its role takes the role from others, but no queue: by 2 the others apply what they have
//! written.

use std::time::Instant;

use hikv::pool::{Kind, Member, Role, Sampled, Work};

use crate::pool::Queues;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;

/// Looks for changes that find some, but none to take, before the loop sleeps all the same.
const FRUITLESS_MAX: u32 = 64;

/// The kinds in the order in which loops count them.
const KINDS: [Kind; 3] = [Kind::Get, Kind::Scan, Kind::Write];

/// A loop as a thread of the pool.
pub(crate) struct Duty<'s> {
    member: Member<'s, Queues>,
    counters: &'s LoopCounters,
    /// What those said before this round.
    before: [Sampled; KINDS.len()],
    /// Loops apply; else they are sampled alone.
    applies: bool,
    fruitless_count: u32,
}

impl<'s> Duty<'s> {
    /// That of the loop with this number.
    pub(crate) fn of(shared: &'s Shared, index: usize) -> Duty<'s> {
        let counters = &shared.telemetry.loops[index];
        Duty {
            member: shared.pool.member(),
            counters,
            before: counters.served(),
            applies: crate::pool::is_adaptive(shared.split),
            fruitless_count: 0,
        }
    }

    /// After a round of requests, which began when the loop `woke`: rule 1.
    pub(crate) fn end_round(&mut self, woke: Instant) {
        self.sample(woke);
        if self.applies && self.member.role() == Role::Apply && self.has_work() {
            self.apply();
        }
    }

    /// Whether rule 2 keeps the loop awake.
    pub(crate) fn has_work(&self) -> bool {
        self.applies && self.fruitless_count < FRUITLESS_MAX && self.member.pool().work().queued_count() > 0
    }

    /// Applies one group. One that fails (for want of memory) has given the order up: a caller that asks for it is told.
    pub(crate) fn apply(&mut self) {
        let count = self.member.apply().unwrap_or(0);
        self.fruitless_count = if count > 0 { 0 } else { self.fruitless_count + 1 };
    }

    /// Rule 3. Awake again, the loop looks anew, whatever woke it.
    pub(crate) fn rest(&mut self) {
        self.member.rest();
        self.fruitless_count = 0;
    }

    /// Tells the pool what was served. What a round took beyond its commands (sockets, parsing) is shared among its requests: it is work of the
    /// serving side.
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

    /// The loop that has the role does nothing any more, as in a command that takes long.
    #[test]
    fn stalled_loop_leaves_no_queue_unserved() {
        let (server, _dir) = testing::server_with(Sharing::default());
        let shared = Arc::clone(server.shared());
        let [mut stalled, mut other] = [0, 1].map(|index| Duty::of(&shared, index));
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
        let mut duty = Duty::of(&shared, 0);
        put(&shared, 100);
        duty.end_round(Instant::now());
        let left = queued_count(&shared);
        assert!((84..100).contains(&left), "sixteen at most, and one at least: {left} are left");
        duty.rest();
        assert_eq!(shared.pool.figures().backend_count, 0);
    }

    /// It was bound and never ran.
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
            store.queue_stats().expect("this process has opened it").queued_count == 0
        };
        assert!((0..10_000_000).any(is_idle));
    }

    /// As after a thread that was in its way for long; its next round has no requests.
    #[test]
    fn idle_loop_checks_again_after_sleep() {
        let (server, _dir) = testing::server_with(Sharing::default());
        let shared = Arc::clone(server.shared());
        let mut duty = Duty::of(&shared, 0);
        (0..FRUITLESS_MAX).for_each(|_| duty.apply());
        put(&shared, 100);
        assert!(!duty.has_work(), "it goes to sleep");
        duty.rest();
        assert!(duty.has_work());
    }

    #[test]
    fn loops_beside_the_stores_threads_apply_nothing() {
        let (server, _dir) = testing::server_with(Sharing::Beside);
        let shared = Arc::clone(server.shared());
        let mut duty = Duty::of(&shared, 0);
        put(&shared, 100);
        duty.end_round(Instant::now());
        assert!(!duty.has_work() && queued_count(&shared) == 100);
    }
}
