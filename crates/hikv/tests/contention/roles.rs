//! Histories of a pool's threads: between two calls a thread may have the backend's role, and apply queued changes.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hikv::pool::{Kind, Member, Plan, Pool, Reading, Role, Split, Work};
use hikv::{Error, Options};
use parking_lot::Mutex;
use testkit::{Contention, Direction, Failure, Operations, Visit, contend};

use crate::place::Placed;

/// The store's queues with a simulated clock: role changes depend on the number of actions, not on their duration
/// here.
struct Queues<'a> {
    placed: &'a Placed,
    now: AtomicU64,
    /// Simulated steps of an apply, which vary over time, so that roles change whatever the calls are.
    apply_count: AtomicU64,
}

impl Work for Queues<'_> {
    fn ticks(&self) -> u64 {
        self.now.fetch_add(100, Ordering::Relaxed)
    }

    fn apply(&self) -> Result<u64, Error> {
        let number = self.apply_count.fetch_add(1, Ordering::Relaxed);
        self.now.fetch_add(if (number / 100).is_multiple_of(2) { 20_000 } else { 0 }, Ordering::Relaxed);
        self.placed.store.background().step().map(|helped| helped.applied_count)
    }

    fn queued_count(&self) -> u64 {
        self.placed.store.background().queue_stats().unwrap().queued_count
    }

    fn applied(&self) -> [u64; 2] {
        let stats = self.placed.store.background().queue_stats().unwrap();
        [stats.applied_count, stats.updated_count]
    }
}

/// A store called by the threads of a pool. A call uses any free member, and first does the work of its role.
struct Adapting<'p, 'a> {
    placed: &'a Placed,
    members: Mutex<Vec<Member<'p, Queues<'a>>>>,
    applied_count: AtomicU64,
    /// The number of threads in the backend's role at the last call, and the number of its changes.
    backend_count: AtomicUsize,
    change_count: AtomicU64,
}

impl Adapting<'_, '_> {
    fn serve<R>(&self, kind: Kind, call: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
        let mut member = self.members.lock().pop().expect("there is a member for each thread");
        for _ in 0..4 {
            if member.role() == Role::Apply {
                let count = member.apply().map_err(|error| Failure::Other(error.to_string()))?;
                self.applied_count.fetch_add(count, Ordering::Relaxed);
            }
        }
        let backend_count = member.pool().figures().backend_count;
        let is_changed = self.backend_count.swap(backend_count, Ordering::Relaxed) != backend_count;
        self.change_count.fetch_add(is_changed.into(), Ordering::Relaxed);
        let begun = member.begin();
        let result = call();
        member.end(kind, 1, begun);
        self.members.lock().push(member);
        result
    }
}

impl Operations for Adapting<'_, '_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.serve(Kind::Get, || self.placed.get(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.serve(Kind::Write, || self.placed.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.serve(Kind::Write, || self.placed.delete(key))
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        self.serve(Kind::Scan, || self.placed.scan(from, direction, each))
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        self.serve(Kind::Write, || self.placed.compare_and_swap(key, expected, new))
    }

    fn clear(&self) -> Result<(), Failure> {
        self.placed.clear()
    }

    fn len(&self) -> Result<u64, Failure> {
        self.placed.len()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.placed.for_each(each)
    }
}

const CALLS: Contention = Contention {
    thread_count: 4,
    call_count: 12_000,
    key_count: 40,
    swaps: true,
    scans: true,
    clear_every: 0,
    seed: 1,
};

/// Checks a history. Returns the number of time windows, and how often the number of threads in the backend's role
/// changed.
fn judge(contention: &Contention, plan: Plan) -> (u64, u64) {
    let placed = Placed::open(
        &Options::new()
            .tuning(|tuning| tuning.partition_count(4))
            .background(false)
            .tuning(|tuning| tuning.order_queues(4, 256)),
    );
    let queues = Queues { placed: &placed, now: AtomicU64::new(0), apply_count: AtomicU64::new(0) };
    let pool = Pool::new(queues, contention.thread_count as usize, plan);
    let members = (0..contention.thread_count).map(|_| pool.member()).collect();
    let store = Adapting {
        placed: &placed,
        members: Mutex::new(members),
        applied_count: AtomicU64::new(0),
        backend_count: AtomicUsize::new(0),
        change_count: AtomicU64::new(0),
    };
    contend(&store, contention).unwrap_or_else(|disorder| panic!("{disorder}"));
    assert!(store.applied_count.load(Ordering::Relaxed) > 0, "some thread applied in its role");
    placed.assert_sound();
    (pool.figures().window_count, store.change_count.load(Ordering::Relaxed))
}

#[test]
fn keys_are_registers_while_threads_change_roles() {
    let (window_count, change_count) = judge(&CALLS, Plan::Adaptive(Reading::WritesLumped));
    assert!(window_count >= CALLS.thread_count * CALLS.call_count / 10_000, "{window_count} windows");
    assert!(change_count >= 2, "roles changed {change_count} times");
    judge(&Contention { clear_every: 500, seed: 2, ..CALLS }, Plan::Adaptive(Reading::UpdatesLeftOut));
    judge(&Contention { seed: 3, ..CALLS }, Plan::Fixed(Split { serving: 2, backend: 2 }));
}

/// Two of four threads have the backend's role but never do its work: writers and scans empty the queues themselves.
#[test]
fn queues_are_served_though_their_threads_stall() {
    let placed = Placed::open(&Options::new().background(false).tuning(|tuning| tuning.order_queues(2, 64)));
    let queues = Queues { placed: &placed, now: AtomicU64::new(0), apply_count: AtomicU64::new(0) };
    let pool = Pool::new(queues, 4, Plan::Fixed(Split { serving: 2, backend: 2 }));
    let mut stalled = [pool.member(), pool.member()];
    assert!(stalled.iter_mut().all(|member| member.role() == Role::Apply));
    placed.store.ordered().unwrap().wait_until_ready(|_| {}).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2_u32 {
            let (pool, store) = (&pool, &placed.store);
            scope.spawn(move || {
                let mut member = pool.member();
                for number in 0..2_000_u32 {
                    assert_eq!(member.role(), Role::Serve, "the roles are taken");
                    store.put([thread.to_be_bytes(), number.to_be_bytes()].concat(), b"value").unwrap();
                }
            });
        }
    });
    assert_eq!(placed.store.ordered().unwrap().iter().unwrap().count(), 4_000);
    assert_eq!(placed.store.background().queue_stats().unwrap().queued_count, 0);
}
