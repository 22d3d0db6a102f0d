//! Walks in steps, while segments are split between them; and `clear`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heap::layout::SEGMENT_BYTES;
use parking_lot::Mutex;
use pmem::{Bytes, LINE_BYTES, Offset};
use pmem_sim::{Model, Sim, StepKind};

use super::super::Cursor;
use super::super::layout::{SegmentHeader, State};
use super::rig::{Contents, Rig, assert_same, key, mixed};

const COUNT: u64 = 6000;

fn filled() -> (Rig<Sim>, Contents) {
    let (rig, mut contents) = (Rig::new(2), Contents::new());
    for number in 0..COUNT {
        rig.put(key(mixed(number), number), number);
        contents.insert(key(mixed(number), number), number);
    }
    (rig, contents)
}

/// Runs a walk; `between` is called with the number of the step before each of them.
fn walk(mut step: impl FnMut(Cursor) -> Cursor, mut between: impl FnMut(u64)) -> u64 {
    let (mut cursor, mut step_count) = (Cursor::default(), 0);
    while !cursor.is_done() {
        between(step_count);
        cursor = step(cursor);
        step_count += 1;
    }
    step_count
}

#[test]
fn walk_during_splits_shows_entries_once() {
    for seed in 0..6 {
        let (rig, contents) = filled();
        let (mut shown, mut rng) = (Contents::new(), fastrand::Rng::with_seed(seed));
        let before = rig.index.split_stats().split_count;
        // `visit_step` rejects an entry that is shown twice.
        let step_count = walk(|cursor| rig.visit_step(cursor, &mut shown), |_| rig.split(rng.u64(..)));
        assert!(step_count > 8 && rig.index.split_stats().split_count > before);
        assert_same(&shown, &contents);
    }
}

/// Only the number of the cursor is kept, as by a remote client.
#[test]
fn numbered_walk_survives_splits_and_reopening() {
    let (mut rig, contents) = filled();
    let (mut shown, mut rng) = (Contents::new(), fastrand::Rng::with_seed(7));
    let (mut number, mut step_count) = (0, 0);
    loop {
        let cursor = rig.visit_step(Cursor::from_number(number), &mut shown);
        number = cursor.number();
        assert_eq!(number == 0, cursor.is_done());
        if cursor.is_done() {
            break;
        }
        assert_eq!(Cursor::from_number(number), cursor);
        rig.split(rng.u64(..));
        step_count += 1;
        if step_count == 4 {
            rig = rig.reopened();
        }
    }
    assert!(step_count > 8);
    assert_same(&shown, &contents);
}

#[test]
fn any_number_is_a_cursor() {
    let (rig, contents) = filled();
    let mut rng = fastrand::Rng::with_seed(8);
    for _ in 0..50 {
        let (mut cursor, mut shown) = (Cursor::from_number(rng.u64(1..)), Contents::new());
        while !cursor.is_done() {
            cursor = rig.visit_step(cursor, &mut shown);
        }
        assert!(shown.iter().all(|(key, value)| contents.get(key) == Some(value)));
    }
}

#[test]
fn walk_shows_all_stable_entries() {
    let (rig, contents) = filled();
    let mut shown = Contents::new();
    let others = |step: u64| (0..300).map(move |number| key(mixed(COUNT + step * 300 + number), COUNT + number));
    walk(
        |cursor| rig.visit_step(cursor, &mut shown),
        |step| {
            others(step).for_each(|key| assert_eq!(rig.put(key, 0), None));
            step.checked_sub(1).into_iter().flat_map(others).for_each(|key| assert_eq!(rig.remove(key), Some(0)));
        },
    );
    shown.retain(|key, _| key.number < COUNT);
    assert_same(&shown, &contents);
}

#[test]
fn sweep_counts_entries_once_during_splits() {
    for seed in 0..6 {
        let (rig, contents) = filled();
        let rig = rig.reopened();
        let mut rng = fastrand::Rng::with_seed(seed);
        walk(|cursor| rig.sweep_step(cursor), |_| rig.split(rng.u64(..)));
        rig.heap.sweep().finish(&rig.medium);
        rig.free_garbage();
        assert_eq!(rig.index.len(), COUNT);
        assert_eq!(rig.heap.stats().live_bytes, COUNT * 16 + rig.index.segment_count() * SEGMENT_BYTES);
        assert_same(&rig.contents(), &contents);
    }
}

/// A reader prevents that items removed during the sweep are freed before its end: those slots have no second
/// owner.
#[test]
fn removal_before_sweep_is_freed_once() {
    let (rig, mut contents) = filled();
    let rig = rig.reopened();
    let reader = epoch::pin();
    for number in 0..COUNT / 2 {
        assert_eq!(rig.remove(key(mixed(number), number)), Some(number));
        contents.remove(&key(mixed(number), number));
    }
    rig.split(0);
    rig.sweep();
    let mut put = |number: u64| {
        rig.put(key(mixed(number), number), number);
        contents.insert(key(mixed(number), number), number);
    };
    // More than one chunk holds, so that slots of the old one are reused.
    (COUNT..4 * COUNT).for_each(&mut put);
    drop(reader);
    rig.free_garbage();
    (4 * COUNT..5 * COUNT).for_each(&mut put);
    rig.free_garbage();
    assert_same(&rig.contents(), &contents);
    let live_bytes = contents.len() as u64 * 16 + rig.index.segment_count() * SEGMENT_BYTES;
    assert_eq!(rig.heap.stats().live_bytes, live_bytes);
}

#[test]
fn clear_leaves_nothing_and_frees_everything() {
    let (rig, mut contents) = filled();
    rig.clear();
    rig.free_garbage();
    assert_eq!((rig.contents().len(), rig.index.len(), rig.index.segment_count()), (0, 0, 2));
    assert_eq!(rig.heap.stats().live_bytes, 2 * SEGMENT_BYTES);
    let rig = rig.reopened();
    assert_eq!(rig.contents().len(), 0);
    rig.sweep();
    contents.clear();
    for number in 0..COUNT {
        assert_eq!(rig.put(key(mixed(number), number), number + 1), None);
        contents.insert(key(mixed(number), number), number + 1);
    }
    let rig = rig.reopened();
    assert_same(&rig.contents(), &contents);
}

/// Returns the number of segments that are marked live, of any generation.
fn live_count(rig: &Rig<Sim>) -> u64 {
    live_count_in(rig, |offset| rig.medium.load(offset, Ordering::Acquire))
}

fn live_count_in(rig: &Rig<Sim>, word: impl Fn(Offset) -> u64) -> u64 {
    let mut count = 0;
    rig.heap.sweep().segments(&mut |offset| {
        let state = SegmentHeader::state_in(word(offset)).map(|(state, _)| state);
        count += u64::from(state == Some(State::Live));
    });
    count
}

/// Checks that all live segments are of the store's generation, now and after a power loss.
fn assert_buried(rig: &Rig<Sim>) {
    assert_eq!(live_count(rig), rig.index.segment_count());
    for image in rig.medium.images(50, 7) {
        let live_count = live_count_in(rig, |offset| image.line(offset)[(offset.0 % LINE_BYTES / 8) as usize]);
        assert_eq!(live_count, rig.index.segment_count(), "{image}");
    }
}

/// The next `clear` uses the generation of one that a crash interrupted, and there are only 65,536 of them:
/// segments left by the interrupted one must not be live again.
#[test]
fn crashed_clear_leaves_nothing_for_later_generations() {
    let (rig, _) = filled();
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    rig.medium.observe(Box::new(move |sim, kind| {
        if kind == StepKind::Order {
            noted.lock().extend(sim.images(2, 0));
        }
    }));
    rig.clear();
    rig.medium.unobserve();
    let images = images.lock();
    let crashed = || images.iter().map(|image| Sim::from_image(image, Model::Line));
    assert!(crashed().any(|medium| live_count(&Rig::opened(medium, 2)) == 2), "no crash was after the clear");
    assert_buried(&rig);
    for medium in crashed() {
        assert_buried(&Rig::opened(medium, 2));
    }
}

#[test]
fn clear_takes_a_chain_along() {
    let rig = Rig::new(1);
    (0..700).for_each(|number| assert_eq!(rig.put(key(5, number), number), None));
    assert!(rig.index.split_stats().chained_count > 0);
    rig.clear();
    rig.free_garbage();
    assert_eq!((rig.get(key(5, 0)), rig.heap.stats().live_bytes), (None, SEGMENT_BYTES));
}
