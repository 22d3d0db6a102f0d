//! Tests of waiting and freed things, and of the bytes reported to the caller.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::pin;

#[test]
fn retired_things_are_freed_after_unpin() {
    let limbo = Limbo::bounded(3 * u64::from(ADVANCE_EVERY));
    let pin = pin();
    for thing in 0..2 * u64::from(ADVANCE_EVERY) {
        limbo.retire(thing, 3, |_| panic!("freed under a pin"));
    }
    assert_eq!((limbo.bytes(), limbo.is_over()), (6 * u64::from(ADVANCE_EVERY), true));
    drop(pin);
    let mut freed = Vec::new();
    while !limbo.is_empty() {
        limbo.collect(|thing| freed.push(thing));
    }
    assert_eq!(freed, (0..2 * u64::from(ADVANCE_EVERY)).collect::<Vec<_>>());
    assert_eq!((limbo.bytes(), limbo.is_over()), (0, false));
}

/// Otherwise a store without further writes would keep them.
#[test]
fn much_that_waits_is_reported_once() {
    let limbo = Limbo::bounded(REPORTED_SHARE * 100);
    let pin = pin();
    let retire = |bytes| limbo.retire(bytes, bytes, |_| panic!("freed under a pin"));
    assert_eq!([retire(40), retire(59), retire(10), retire(99)], [0, 0, 109, 0]);
    assert_eq!(limbo.retire_all([(7, 7), (8, 8)].into_iter(), |_| panic!("freed under a pin")), 114);
    drop(pin);
    while !limbo.is_empty() {
        limbo.collect(|_| ());
    }
    let _pin = crate::pin();
    assert_eq!([limbo.retire(0, 50, |_| ()), limbo.retire(0, 50, |_| ())], [0, 100]);
}

/// Light things wait in the thread's inbox; they are counted and freed like those in the queue.
#[test]
fn inbox_items_wait_like_others() {
    let limbo = Limbo::bounded(u64::MAX);
    let pin = pin();
    (0..PLACE_COUNT as u64).for_each(|thing| _ = limbo.retire(thing, 8, |_| panic!("freed under a pin")));
    let in_queues: usize = limbo.lanes.iter().map(|lane| lane.waiting.lock().queue.len()).sum();
    assert!(in_queues == 0 || thread_index() >= LANE_COUNT, "{in_queues} are in queues");
    assert_eq!((limbo.len(), limbo.bytes()), (PLACE_COUNT as u64, 8 * PLACE_COUNT as u64));
    drop(pin);
    let mut freed = Vec::new();
    while !limbo.is_empty() {
        limbo.collect(|thing| freed.push(thing));
    }
    assert_eq!((freed, limbo.bytes()), ((0..PLACE_COUNT as u64).collect::<Vec<_>>(), 0));
}

/// Each waits as if it were retired separately, behind the things in the inbox, and is freed like them.
#[test]
fn things_retired_together_are_freed() {
    const COUNT: u64 = 3 * ADVANCE_EVERY as u64;
    let limbo = Limbo::bounded(u64::MAX);
    let pin = pin();
    limbo.retire(0, 8, |_| panic!("freed under a pin"));
    limbo.retire_all((1..COUNT).map(|thing| (thing, 8)), |_| panic!("freed under a pin"));
    assert_eq!((limbo.len(), limbo.bytes()), (COUNT, 8 * COUNT));
    drop(pin);
    let (mut freed, mut next) = (Vec::new(), COUNT);
    while (freed.len() as u64) < COUNT {
        advance();
        limbo.retire_all((next..next + 20).map(|thing| (thing, 8)), |thing| freed.push(thing));
        next += 20;
    }
    while !limbo.is_empty() {
        limbo.collect(|thing| freed.push(thing));
    }
    assert_eq!((freed, limbo.bytes()), ((0..next).collect::<Vec<_>>(), 0));
}

/// The next collection notices that a limbo that was over its limit was emptied by single retirements.
#[test]
fn an_empty_limbo_is_not_over() {
    let limbo = Limbo::bounded(10);
    let pin = pin();
    (0..3).for_each(|thing| _ = limbo.retire(thing, 5, |_| panic!("freed under a pin")));
    assert!(limbo.is_over());
    drop(pin);
    let mut freed_count = 0;
    while limbo.bytes() > 0 {
        advance();
        // Keeps no bytes: does not update `is_over`.
        limbo.retire(3, 0, |_| freed_count += 1);
    }
    assert!(freed_count >= 3);
    while !limbo.is_empty() {
        limbo.collect(|_| ());
    }
    limbo.collect(|_| ());
    assert!(!limbo.is_over());
}

/// Readers follow a pointer that a writer replaces and frees. A freed cell is poisoned before its memory is
/// released.
#[test]
fn readers_never_meet_freed_memory() {
    const POISON: u64 = u64::MAX;
    const UPDATE_COUNT: u64 = if cfg!(miri) { 1_000 } else { 100_000 };
    let cell = |value| Box::into_raw(Box::new(AtomicU64::new(value)));
    let (shared, stop, limbo) = (AtomicPtr::new(cell(0)), AtomicBool::new(false), Limbo::default());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _pin = pin();
                    // SAFETY: pinned since before the load, so that the cell is not freed.
                    let value = unsafe { &*shared.load(Ordering::Acquire) }.load(Ordering::Relaxed);
                    assert_ne!(value, POISON);
                }
            });
        }
        let free = |old: AtomicPtr<AtomicU64>| {
            // SAFETY: unlinked, and no pin can reach it.
            let old = unsafe { Box::from_raw(old.into_inner()) };
            old.store(POISON, Ordering::Relaxed);
        };
        for value in 1..UPDATE_COUNT {
            let old = shared.swap(cell(value), Ordering::AcqRel);
            limbo.retire(AtomicPtr::new(old), 8, free);
        }
        stop.store(true, Ordering::Relaxed);
        while !limbo.is_empty() {
            limbo.collect(free);
        }
    });
    // SAFETY: the last cell was never retired, and all readers are gone.
    drop(unsafe { Box::from_raw(shared.into_inner()) });
}
