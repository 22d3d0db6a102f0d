//! Explores every interleaving of threads that hold lanes, with the reorderings that the memory model allows. Also
//! runs broken variants, which must be caught: releasing a lane without a release store; checking and then taking
//! in two steps; leaving out a lane when all are wanted; and taking all lanes in descending order.

extern crate std;

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use word::Word;
use word::model::{NoRelease, Unchanged, Weakened, Weakening, explore, is_caught};

use crate::holding::{Holding, hold_any};

/// Number of preemptions in which each broken variant is caught.
const PREEMPTION_COUNT: usize = 3;

/// The step that a broken variant leaves out.
trait Variant: Weakening {
    const LOOKS_FIRST: bool = false;
    const LEAVES_ONE_OUT: bool = false;
    const DESCENDS: bool = false;
}

struct ChecksFirst;
struct LeavesOneOut;
struct Descends;

impl Weakening for ChecksFirst {}
impl Weakening for LeavesOneOut {}
impl Weakening for Descends {}

impl Variant for Unchanged {}
impl Variant for NoRelease {}

impl Variant for ChecksFirst {
    const LOOKS_FIRST: bool = true;
}

impl Variant for LeavesOneOut {
    const LEAVES_ONE_OUT: bool = true;
}

impl Variant for Descends {
    const DESCENDS: bool = true;
}

/// A lane, and its number, which only its holder reads and raises.
struct Lane<T: Variant> {
    holding: Holding<Weakened<T>>,
    number: UnsafeCell<u64>,
}

// SAFETY: only the lane's holder reaches the number; the models check that.
unsafe impl<T: Variant> Sync for Lane<T> {}

/// The lanes of one scene.
struct Lanes<T: Variant>(Vec<Lane<T>>);

type Vec<T> = std::vec::Vec<T>;

impl<T: Variant> Lanes<T> {
    fn new(count: usize) -> Arc<Lanes<T>> {
        let lane = |_| Lane { holding: Holding(Weakened::new(0)), number: UnsafeCell::new(0) };
        Arc::new(Lanes((0..count).map(lane).collect()))
    }

    fn try_hold(&self, lane: usize) -> bool {
        let Holding(word) = &self.0[lane].holding;
        if T::LOOKS_FIRST {
            let is_free = word.load(Ordering::Relaxed) == 0;
            word.store(1, Ordering::Relaxed);
            return is_free;
        }
        self.0[lane].holding.try_hold()
    }

    fn raise(&self, lane: usize) {
        // SAFETY: the caller holds the lane; loom checks whether that suffices.
        self.0[lane].number.with_mut(|number| unsafe { *number += 1 });
    }

    /// Runs a writer's change.
    fn change(&self, preferred: usize) {
        let lane = loop {
            match hold_any(self.0.len(), preferred, |lane| self.try_hold(lane)) {
                Some(lane) => break lane,
                None => thread::yield_now(),
            }
        };
        self.raise(lane);
        self.0[lane].holding.let_go();
    }

    /// Runs a batch: no writer runs at the same time.
    fn change_alone(&self, descends: bool) {
        let count = self.0.len();
        let taken = if T::LEAVES_ONE_OUT { count - 1 } else { count };
        for i in 0..taken {
            let lane = if descends { count - 1 - i } else { i };
            while !self.try_hold(lane) {
                thread::yield_now();
            }
        }
        (0..count).for_each(|lane| self.raise(lane));
        (0..taken).for_each(|lane| self.0[lane].holding.let_go());
    }

    fn sum(&self) -> u64 {
        // SAFETY: the threads have been joined; loom checks whether that suffices.
        self.0.iter().map(|lane| lane.number.with(|number| unsafe { *number })).sum()
    }
}

/// Runs two writers that prefer the same lane.
fn writers<T: Variant>(lane_count: usize) {
    let lanes = Lanes::<T>::new(lane_count);
    let theirs = Arc::clone(&lanes);
    let writer = thread::spawn(move || theirs.change(0));
    lanes.change(0);
    writer.join().unwrap();
    assert_eq!(lanes.sum(), 2);
}

fn writers_of_one<T: Variant>() {
    writers::<T>(1);
}

fn writers_of_two<T: Variant>() {
    writers::<T>(2);
}

/// Runs a writer and a batch.
fn batch_and_writer<T: Variant>() {
    let lanes = Lanes::<T>::new(2);
    let theirs = Arc::clone(&lanes);
    let writer = thread::spawn(move || theirs.change(1));
    lanes.change_alone(false);
    writer.join().unwrap();
    assert_eq!(lanes.sum(), 3);
}

/// Runs two batches.
fn batches<T: Variant>() {
    let lanes = Lanes::<T>::new(2);
    let theirs = Arc::clone(&lanes);
    let other = thread::spawn(move || theirs.change_alone(T::DESCENDS));
    lanes.change_alone(false);
    other.join().unwrap();
    assert_eq!(lanes.sum(), 4);
}

#[test]
fn lane_holder_sees_previous_holders_stores() {
    explore(PREEMPTION_COUNT, writers_of_one::<Unchanged>);
    explore(PREEMPTION_COUNT, writers_of_two::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, writers_of_one::<NoRelease>));
    assert!(is_caught(PREEMPTION_COUNT, writers_of_one::<ChecksFirst>));
}

#[test]
fn thread_holds_all_lanes_exclusively() {
    explore(PREEMPTION_COUNT, batch_and_writer::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, batch_and_writer::<NoRelease>));
    assert!(is_caught(PREEMPTION_COUNT, batch_and_writer::<LeavesOneOut>));
}

#[test]
fn threads_wanting_all_lanes_avoid_deadlock() {
    explore(PREEMPTION_COUNT, batches::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, batches::<Descends>));
}
