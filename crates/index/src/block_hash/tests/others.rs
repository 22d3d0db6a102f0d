//! The guarantees of the table to the sweep, to readers that may still read unlinked objects, and to the process
//! after a killed one.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use heap::layout::SEGMENTS_CHUNK_SLOTS;
use heap::{Place, PlaceKind};
use parking_lot::Mutex;
use pmem_sim::{Image, Model, Sim};

use super::rig::{Name, Rig, mixed};
use crate::Position;
use crate::block_hash::{Full, Slot};
use crate::segmented::Segmented;

/// The segments that two splits need.
const LEFT_COUNT: usize = 4;
const NAME: Name = (0x1234_5678_9ABC_DEF0, 1);

/// Returns a store that was not swept yet, with a key whose item is outside the table, and the item's place.
fn unswept() -> (Rig, Place) {
    unswept_of(200)
}

/// The same, with `key_count` other keys.
fn unswept_of(key_count: u32) -> (Rig, Place) {
    let rig = Rig::new(Model::Line);
    (0..key_count).for_each(|number| rig.put(mixed(number), 1));
    let place = rig.heap.reserve(&rig.medium, 40, 0).unwrap().publish();
    let pin = epoch::pin();
    let (buckets, _) = rig.locked(NAME);
    let slot = Slot::of_item(NAME.0, Position::of(place));
    buckets.insert(&slot).expect("there is space").settle(&rig.medium).unwrap();
    drop(pin);
    (Rig::opened(rig.medium.clone()), place)
}

/// An action on a store.
type Act = fn(&Rig);

/// The sweep frees everything that it does not reach, unless the item was marked; readers may still read an
/// unlinked item.
#[test]
fn sweep_spares_unlinked_items() {
    let ways: [(&str, Act); 4] = [
        ("replaced", |rig| rig.put(NAME, 2)),
        ("removed", |rig| rig.remove(NAME)),
        ("replaced by a batch", |rig| rig.batch(&[(NAME, Some(2))])),
        ("removed by a batch", |rig| rig.batch(&[(NAME, None)])),
    ];
    for (what, unlink) in ways {
        let (rig, place) = unswept();
        let _reader = epoch::pin();
        unlink(&rig);
        assert_eq!(rig.heap.sweep().mark_reached(place), Ok(false), "{what}, and it would be freed under a reader");
    }
    let (rig, _) = unswept();
    let _reader = epoch::pin();
    let old = Place { offset: rig.table.segments.of(0).offset(), kind: PlaceKind::Segment };
    rig.split(mixed(0).0);
    assert_eq!(rig.table.split_counts().0, 1);
    assert_eq!(rig.heap.sweep().mark_reached(old), Ok(false), "split, and it would be freed under a reader");
}

/// Returns, for each step of `act`, whether the partition is locked, and whether all buckets of the segment are.
fn locks_during(rig: &Arc<Rig>, act: impl FnOnce(&Rig)) -> Vec<(bool, bool)> {
    let (locks, theirs) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(rig));
    let noted = Arc::clone(&locks);
    rig.medium.observe(Box::new(move |_, _| {
        let _pin = epoch::pin();
        let segment = theirs.table.segments.of(NAME.0);
        noted.lock().push((theirs.table.segments.is_partition_locked(0), segment.is_frozen()));
    }));
    act(rig);
    rig.medium.unobserve();
    std::mem::take(&mut *locks.lock())
}

/// A thread that splits a segment, chains one or sweeps has exclusive use of the segment and of the directory.
#[test]
fn splits_chains_and_sweeps_freeze_segments() {
    let ways: [(&str, u32, Act); 3] = [
        ("split", 200, |rig| rig.split(mixed(0).0)),
        ("chained", 0, |rig| rig.split(NAME.0)),
        ("swept", 200, Rig::sweep_first),
    ];
    for (what, key_count, act) in ways {
        let (rig, _) = unswept_of(key_count);
        // Space is reserved before the locks are taken, from a chunk that exists now.
        drop(rig.heap.reserve_segment(&rig.medium).unwrap());
        let locks = locks_during(&Arc::new(rig), act);
        assert!(!locks.is_empty() && locks.iter().all(|&locks| locks == (true, true)), "{what}: {locks:?}");
    }
}

/// The wait of a writer for the segment is bounded, whatever the file has to do: the lines of two segments, and
/// some words in addition.
#[test]
fn frozen_segment_allocates_nothing() {
    const STEPS_MAX: usize = 24;
    let rig = Rig::new(Model::Line);
    (0..200).for_each(|number| rig.put(mixed(number), 1));
    let mark_bytes = rig.heap.supply().mark_bytes();
    (rig.table.segment_count()..u64::from(SEGMENTS_CHUNK_SLOTS))
        .for_each(|_| _ = rig.heap.reserve_segment(&rig.medium).unwrap().publish());
    assert_eq!(rig.heap.supply().mark_bytes(), mark_bytes, "the chunk has no more");
    let (rig, steps) = (Arc::new(rig), Arc::new(Mutex::new(Vec::new())));
    let (theirs, noted) = (Arc::clone(&rig), Arc::clone(&steps));
    rig.medium.observe(Box::new(move |_, _| {
        let _pin = epoch::pin();
        noted.lock().push((theirs.table.segments.of(mixed(0).0).is_frozen(), theirs.heap.supply().mark_bytes()));
    }));
    rig.split(mixed(0).0);
    rig.medium.unobserve();
    let steps = std::mem::take(&mut *steps.lock());
    let (frozen, free): (Vec<_>, Vec<_>) = steps.into_iter().partition(|(is_frozen, _)| *is_frozen);
    assert!(!free.is_empty(), "no chunk was made");
    assert!(frozen.iter().all(|(_, mark)| *mark == rig.heap.supply().mark_bytes()), "{frozen:?}");
    assert!((4..STEPS_MAX).contains(&frozen.len()), "{}", frozen.len());
}

/// A split that another thread overtakes holds no space. If it did, the region would seem full to the writer of
/// another segment that needs the last space.
#[test]
fn overtaken_split_frees_its_reservation() {
    const LOOK_COUNT: usize = 100;
    let rig = Rig::new(Model::Line);
    (0..200).for_each(|number| rig.put(mixed(number), 1));
    rig.medium.fail_grow_after(0);
    let places: Vec<_> = iter::from_fn(|| Some(rig.heap.reserve_segment(&rig.medium).ok()?.publish())).collect();
    places.iter().take(LEFT_COUNT).for_each(|&place| rig.heap.free(&rig.medium, place));
    let (signature, full) = (mixed(0).0, Full { segment: rig.table.segments.of(mixed(0).0).offset() });
    let (rig, has_begun) = (Arc::new(rig), AtomicBool::new(false));
    let (theirs, (sender, overtaken)) = (Arc::clone(&rig), mpsc::channel());
    rig.medium.observe(Box::new(move |_, _| {
        let is_frozen = {
            let _pin = epoch::pin();
            theirs.table.segments.of(signature).is_frozen()
        };
        if !is_frozen || has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let (late, (begins, began)) = (Arc::clone(&theirs), mpsc::channel());
        let split = thread::spawn(move || {
            begins.send(()).unwrap();
            late.table.split(late.cx(), signature, full).unwrap();
        });
        began.recv().unwrap();
        let is_refused = |_: &usize| {
            thread::yield_now();
            theirs.heap.reserve_segment(&theirs.medium).is_err()
        };
        sender.send((split, (0..LOOK_COUNT).filter(is_refused).count())).unwrap();
    }));
    rig.table.split(rig.cx(), signature, full).unwrap();
    rig.medium.unobserve();
    let (overtaken, refused_count) = overtaken.recv().unwrap();
    overtaken.join().unwrap();
    assert_eq!((rig.table.split_counts().0, refused_count), (1, 0));
}

/// A thread that waits for the segment's lock finds it dead, and looks the segment up again.
#[test]
fn segment_that_was_split_is_dead() {
    let (rig, _pin) = (Rig::new(Model::Line), epoch::pin());
    (0..200).for_each(|number| rig.put(mixed(number), 1));
    let old = rig.table.segments.of(mixed(0).0);
    rig.split(mixed(0).0);
    assert!(rig.table.split_counts().0 == 1 && old.is_dead());
}

/// Returns the number of objects that `act` leaves to be freed when this thread is not pinned any more.
fn left_by(rig: &Rig, act: impl FnOnce()) -> u64 {
    rig.free_garbage();
    let _reader = epoch::pin();
    act();
    rig.limbo.len()
}

#[test]
fn unlinked_item_is_left_to_free() {
    let rig = Rig::new(Model::Line);
    (0..200).for_each(|number| rig.put(mixed(number), number));
    let (one, other) = (mixed(0).0, mixed(0).0 ^ 1 << 63);
    assert_eq!(left_by(&rig, || rig.split(one)), 3, "the segment, its table, and a directory that was doubled");
    assert_eq!(left_by(&rig, || rig.split(one)), 3, "again");
    assert_eq!(left_by(&rig, || rig.split(other)), 2, "of a segment of less depth");
    assert_eq!(rig.table.split_counts(), (3, 0));
    assert_eq!(left_by(&rig, || rig.batch(&[(mixed(0), Some(7))])), 1, "the overlay");
    assert_eq!(left_by(&rig, || rig.clear()), 1, "the tables");
    rig.free_garbage();
}

/// Returns the possible states of a store with as many keys of one signature as it can hold, when its process is
/// killed while a segment is chained; and the next key.
fn killed() -> (Vec<Image>, Name) {
    let (rig, killed) = (Rig::new(Model::Line), Arc::new(Mutex::new(Vec::new())));
    let next = (0..).map(|number| (NAME.0, number)).find(|&name| rig.try_put(name, 1).is_err());
    let (next, noted) = (next.expect("a segment has an end"), Arc::clone(&killed));
    rig.medium.observe(Box::new(move |medium, _| noted.lock().extend(medium.killed())));
    rig.split(next.0);
    rig.medium.unobserve();
    (std::mem::take(&mut *killed.lock()), next)
}

/// Another process writes the next key in each of these ways, and the power fails. Returns the ways that lose the
/// key.
fn losing_ways() -> Vec<&'static str> {
    let alone: fn(&Rig, Name) = |rig, name| rig.put(name, 2);
    let batch: fn(&Rig, Name) = |rig, name| rig.batch(&[(name, Some(2))]);
    let after_another: fn(&Rig, Name) = |rig, name| {
        let pin = epoch::pin();
        drop(rig.table.lock(rig.cx(), name.0));
        drop(pin);
        // The fences of that thread complete nothing of this one.
        thread::scope(|scope| _ = scope.spawn(|| rig.put(name, 2)));
    };
    let (images, next) = killed();
    assert!(images.len() > 2);
    let ways = [("a put", alone), ("a batch", batch), ("a put after another's look", after_another)];
    let is_losing = |write: fn(&Rig, Name)| {
        images.iter().any(|image| {
            let rig = Rig::opened(Sim::from_image(image, Model::Line));
            write(&rig, next);
            let is_lost = |image: &Image| Rig::opened(Sim::from_image(image, Model::Line)).get(next) != Some(2);
            rig.medium.images(16, 1).iter().any(is_lost)
        })
    };
    ways.into_iter().filter(|(_, write)| is_losing(*write)).map(|(what, _)| what).collect()
}

#[test]
fn killed_process_chain_is_durable_before_writes() {
    assert_eq!(losing_ways(), [""; 0]);
}
