//! A discrete-event model of a store: threads on cores of their own execute operations with given service times, and
//! wait for locks, and for a queue that background threads empty.
//!
//! An operation is a read, a write or a scan. A write searches, takes the lock of its place (a leaf or a bucket) for
//! the rest of its time, and then adds its change to the queue, if there are background threads. A full queue holds
//! the writer up. A scan begins when the queue is empty.
//!
//! The model knows no limit of the memory's bandwidth and no contention for cache lines, so it is an upper bound. It
//! has a fixed seed: the same parameters give the same rate.

pub(crate) mod resources;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::records::{Popularity, mix};
use resources::{BoundedQueue, Fifo};

/// Operations of a simulation, of which the second half counts.
const OPERATION_COUNT: u64 = 100_000;
const SEED: u64 = 7;
/// Units of time per nanosecond.
const PER_NS: f64 = 1000.0;

/// The service times of a store, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Services {
    pub(crate) read: f64,
    /// A write's time before its lock.
    pub(crate) search: f64,
    /// A write's time under its lock.
    pub(crate) locked: f64,
    pub(crate) scan: f64,
    /// The background's time for a write.
    pub(crate) apply: f64,
}

/// The shares of operations, in percent. The rest are reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shares {
    pub(crate) writes: u32,
    pub(crate) scans: u32,
    /// Reads that a write of the same place follows, as one operation.
    pub(crate) changes: u32,
}

/// A store and its load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Model {
    pub(crate) services: Services,
    pub(crate) shares: Shares,
    /// Records, of which some are more popular than others, and places, each with a lock.
    pub(crate) record_count: u64,
    pub(crate) place_count: u64,
    /// Changes that wait at most for the background.
    pub(crate) queue_capacity: usize,
}

/// The threads of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Threads {
    pub(crate) serving: usize,
    /// Without background threads, writes leave nothing to do.
    pub(crate) background: usize,
}

/// The next action of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Begin,
    Lock(u64),
    Enqueue,
}

impl Model {
    /// Divides threads between serving and background in proportion to their work, so that the queue stays short.
    pub(crate) fn split(&self, thread_count: usize) -> Threads {
        let Services { read, search, locked, scan, apply } = self.services;
        let Shares { writes, scans, changes } = self.shares;
        let [written, scanned, changed] = [writes + changes, scans, changes].map(|share| f64::from(share) / 100.0);
        let reads = 1.0 - written - scanned + changed;
        let serving = reads * read + written * (search + locked) + scanned * scan;
        let applying = written * apply;
        let background = match applying > 0.0 {
            true => (thread_count as f64 * applying / (applying + serving)).ceil() as usize,
            false => 0,
        };
        let background = background.min(thread_count - 1);
        Threads { serving: thread_count - background, background }
    }

    /// Returns the nanoseconds per operation of all threads together.
    pub(crate) fn ns_per_operation(&self, threads: Threads) -> f64 {
        let mut simulation = Simulation::new(self, threads);
        let half_at = simulation.run_until(OPERATION_COUNT / 2);
        let end_at = simulation.run_until(OPERATION_COUNT);
        (end_at - half_at) as f64 / PER_NS / (OPERATION_COUNT - OPERATION_COUNT / 2) as f64
    }
}

struct Simulation<'m> {
    model: &'m Model,
    rng: SmallRng,
    popularity: Popularity,
    /// The next step of each thread, the earliest first.
    events: BinaryHeap<Reverse<(u64, usize, Step)>>,
    locks: HashMap<u64, Fifo>,
    queue: Option<BoundedQueue>,
    begun_count: u64,
}

impl Simulation<'_> {
    fn new(model: &Model, threads: Threads) -> Simulation<'_> {
        let events = (0..threads.serving).map(|thread| Reverse((0, thread, Step::Begin)));
        Simulation {
            model,
            rng: SmallRng::seed_from_u64(SEED),
            popularity: Popularity::of(model.record_count),
            events: events.collect(),
            locks: HashMap::new(),
            queue: (threads.background > 0).then(|| BoundedQueue::new(threads.background, model.queue_capacity)),
            begun_count: 0,
        }
    }

    /// Simulates until this many operations have begun; returns the time.
    fn run_until(&mut self, operation_count: u64) -> u64 {
        loop {
            let Reverse((now, thread, step)) = self.events.pop().expect("every thread has a next step");
            if step == Step::Begin && self.begun_count == operation_count {
                self.events.push(Reverse((now, thread, step)));
                return now;
            }
            let (at, next) = match step {
                Step::Begin => self.begin(now),
                Step::Lock(place) => self.lock(now, place),
                Step::Enqueue => self.enqueue(now),
            };
            self.events.push(Reverse((at, thread, next)));
        }
    }

    fn begin(&mut self, now: u64) -> (u64, Step) {
        self.begun_count += 1;
        let Services { read, search, scan, .. } = self.model.services;
        let Shares { writes, scans, changes } = self.model.shares;
        let place = mix(self.popularity.record(&mut self.rng)) % self.model.place_count;
        let kind = self.rng.random_range(0..100);
        if kind < writes {
            (now + units(search), Step::Lock(place))
        } else if kind < writes + changes {
            (now + units(read + search), Step::Lock(place))
        } else if kind < writes + changes + scans {
            let start = self.queue.as_ref().map_or(now, |queue| queue.empty_at(now));
            (start + units(scan), Step::Begin)
        } else {
            (now + units(read), Step::Begin)
        }
    }

    fn lock(&mut self, now: u64, place: u64) -> (u64, Step) {
        let end = self.locks.entry(place).or_default().serve(now, units(self.model.services.locked));
        (end, Step::Enqueue)
    }

    fn enqueue(&mut self, now: u64) -> (u64, Step) {
        let service = units(self.model.services.apply);
        (self.queue.as_mut().map_or(now, |queue| queue.add(now, service)), Step::Begin)
    }
}

fn units(ns: f64) -> u64 {
    (ns * PER_NS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of 3 ns and a locked nanosecond, in one place.
    const MODEL: Model = Model {
        services: Services { read: 2.0, search: 3.0, locked: 1.0, scan: 10.0, apply: 0.0 },
        shares: Shares { writes: 100, scans: 0, changes: 0 },
        record_count: 1000,
        place_count: 1,
        queue_capacity: 16,
    };

    fn ns(model: &Model, serving: usize, background: usize) -> f64 {
        model.ns_per_operation(Threads { serving, background })
    }

    fn is_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.01, "{found}, expected {expected}");
    }

    #[test]
    fn single_lock_serves_threads_in_turn() {
        let model = Model { services: Services { search: 0.0, ..MODEL.services }, ..MODEL };
        [1, 2, 7, 32].into_iter().for_each(|threads| is_near(ns(&model, threads, 0), 1.0));
    }

    /// Amdahl's law with a constant serial part: the threads share the time until the lock is always taken.
    #[test]
    fn serial_part_bounds_the_rate() {
        for (threads, expected) in [(1, 4.0), (2, 2.0), (4, 1.0), (8, 1.0), (32, 1.0)] {
            is_near(ns(&MODEL, threads, 0), expected);
        }
    }

    #[test]
    fn threads_without_common_places_scale() {
        let reads = Model { shares: Shares::default(), ..MODEL };
        is_near(ns(&reads, 32, 0), 2.0 / 32.0);
        let many = Model { place_count: 1 << 40, record_count: 1 << 40, ..MODEL };
        assert!(ns(&many, 32, 0) > 4.0 / 32.0 && ns(&many, 2, 0) < 2.1);
    }

    /// The queue's servers bound the rate if they are slower than the writers, and leave it alone if not.
    #[test]
    fn slower_of_serving_and_background_decides() {
        let model = |apply| Model {
            services: Services { apply, ..MODEL.services },
            place_count: 1 << 40,
            record_count: 1 << 40,
            ..MODEL
        };
        is_near(ns(&model(8.0), 1, 1), 8.0);
        is_near(ns(&model(8.0), 1, 2), 4.0);
        is_near(ns(&model(3.0), 1, 1), 4.0);
    }

    /// A scan waits for the change of the write before it, and a write is not held up.
    #[test]
    fn scan_waits_for_changes() {
        let shares = Shares { writes: 50, scans: 50, changes: 0 };
        let slow = Model { services: Services { apply: 40.0, ..MODEL.services }, shares, ..MODEL };
        let fast = Model { services: Services { apply: 0.0, ..MODEL.services }, shares, ..MODEL };
        assert!(ns(&slow, 1, 1) > ns(&fast, 1, 1) + 15.0);
        is_near(ns(&fast, 1, 1), 7.0);
    }

    #[test]
    fn threads_are_split_by_work() {
        let model = Model { services: Services { apply: 4.0, ..MODEL.services }, ..MODEL };
        assert_eq!(model.split(16), Threads { serving: 8, background: 8 });
        let reads = Model { shares: Shares::default(), ..model };
        assert_eq!(reads.split(16), Threads { serving: 16, background: 0 });
        assert_eq!(model.ns_per_operation(model.split(16)), model.ns_per_operation(model.split(16)));
    }
}
