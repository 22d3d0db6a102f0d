//! Cuts the power after every step of a write, or of a later action of a reader or another writer that relies on
//! it. The result is opened, and must show the complete old or the complete new contents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heap::BatchWord;
use heap::layout::BATCH_WORD_COUNT;
use parking_lot::Mutex;
use pmem::{Bytes, Canary, Offset};
use pmem_sim::{Image, Model, Sim};

use super::super::layout::LINE_ENTRY_COUNT;
use super::crash::{IMAGE_COUNT, PARTITION_COUNT, Wrong, as_another, crashed, settled, store, wrong_now};
use super::rig::{Contents, Key, Rig, item, key, mixed};
use crate::Position;
use crate::canary;
use crate::partitioned_hash::Slot;

fn some() -> Contents {
    (0..8).map(|number| (key(mixed(number), number), number)).collect()
}

/// Keys of one home line, of different signatures.
fn neighbours() -> impl Iterator<Item = Key> {
    (0..).map(|number| key(0x77 + (number << 40), 1000 + number))
}

/// Returns [`some`] with a full home line of [`neighbours`], and the next neighbour.
fn crowded() -> (Contents, Key) {
    let (mut contents, mut keys) = (some(), neighbours());
    contents.extend(keys.by_ref().take(LINE_ENTRY_COUNT as usize).map(|key| (key, 1)));
    (contents, keys.next().unwrap())
}

/// Puts like the engine: the item is flushed, and the publication orders it.
fn put_streamed(rig: &Rig<Sim>, key: Key, value: u64) {
    let _pin = epoch::pin();
    let position = Position::of(rig.heap.reserve(&rig.medium, 16, 0).unwrap().publish());
    let bytes = [key.number.to_le_bytes(), value.to_le_bytes()].concat();
    // SAFETY: the place was just reserved.
    unsafe { rig.medium.stream(position.offset(), &[&bytes]) };
    let (published, found) = rig.publish(key, position).unwrap();
    rig.finish(published, found);
}

fn puts(canary: Option<Canary>) -> Vec<String> {
    let (contents, new) = crowded();
    let rig = store(&contents, canary);
    let old = *contents.keys().next().unwrap();
    let with = |contents: &Contents, key, value| contents.clone().into_iter().chain([(key, value)]).collect();
    let inserted: Contents = with(&contents, new, 2);
    let replaced = with(&inserted, old, 3);
    let mut wrong = crashed(&rig, &inserted, |rig| put_streamed(rig, new, 2));
    wrong.extend(crashed(&rig, &replaced, |rig| put_streamed(rig, old, 3)));
    let mut removed = replaced;
    removed.remove(&old);
    wrong.extend(crashed(&rig, &removed, |rig| _ = rig.remove(old)));
    wrong
}

#[test]
fn put_replace_remove_are_atomic() {
    assert_eq!(puts(None), Vec::<String>::new());
    for canary in [canary::ITEM_NOT_ORDERED, canary::OVERFLOW_BIT_LATE, canary::UNSETTLED_READ] {
        assert!(!puts(Some(canary)).is_empty(), "broken variant {canary:?} was not caught");
    }
}

/// Returns a batch with one change of each kind, in several segments; the new key overflows its line.
fn batch_of(contents: &Contents, new: Key) -> (Vec<(Key, Option<u64>)>, Contents) {
    let mut keys = contents.keys().copied();
    let mut changes = vec![(new, Some(7))];
    changes.extend(keys.by_ref().take(2).map(|key| (key, Some(8))));
    changes.extend(keys.take(2).map(|key| (key, None)));
    let mut after = contents.clone();
    for (key, value) in &changes {
        after.remove(key);
        after.extend(value.map(|value| (*key, value)));
    }
    (changes, after)
}

fn batches(canary: Option<Canary>) -> Vec<String> {
    let (contents, new) = crowded();
    let rig = store(&contents, canary);
    let (changes, after) = batch_of(&contents, new);
    crashed(&rig, &after, |rig| rig.write_batch(&changes))
}

#[test]
fn batch_is_atomic() {
    assert_eq!(batches(None), Vec::<String>::new());
    for canary in [canary::BATCH_BEFORE_RECORD, canary::BATCH_BEFORE_ENTRIES, canary::BATCH_FORGOTTEN_EARLY] {
        assert!(!batches(Some(canary)).is_empty(), "broken variant {canary:?} was not caught");
    }
}

/// Acts as the next owner of a free place, on another thread: overwrites its bytes durably.
fn use_again(rig: &Arc<Rig<Sim>>, place: Offset, bytes: [u8; 64]) {
    as_another(rig, move |rig| {
        rig.free_garbage();
        // SAFETY: the place is free, and no other thread allocates.
        unsafe { rig.medium.stream(place, &[&bytes]) };
        rig.commit_all();
    });
}

/// The record's space is free when the batch is over: nothing found after a crash names it.
#[test]
fn no_word_names_a_finished_batch() {
    let (contents, new) = crowded();
    let rig = store(&contents, None);
    let (changes, after) = batch_of(&contents, new);
    let record = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&record);
    rig.medium.observe(Box::new(move |medium, _| {
        let word = (0..BATCH_WORD_COUNT).find_map(|number| BatchWord::load(medium, number).unwrap());
        word.iter().for_each(|word| *noted.lock() = Some(word.record));
    }));
    rig.write_batch(&changes);
    rig.medium.unobserve();
    let record = record.lock().expect("there was one");
    use_again(&rig, record, [0xA5; 64]);
    assert_eq!(wrong_now(&rig, after), Vec::<String>::new());
}

fn splits(canary: Option<Canary>) -> Vec<String> {
    let (contents, rig) = (some(), store(&some(), canary));
    crashed(&rig, &contents, |rig| rig.split(0))
}

#[test]
fn split_loses_nothing() {
    assert_eq!(splits(None), Vec::<String>::new());
    for canary in [canary::SPLIT_BEFORE_SEGMENTS, canary::RECORD_CLEARED_EARLY] {
        assert!(!splits(Some(canary)).is_empty(), "broken variant {canary:?} was not caught");
    }
}

/// The old segment's space is free when the split is over: the partition's record no longer names it.
#[test]
fn no_record_names_a_freed_segment() {
    let (contents, rig) = (some(), store(&some(), None));
    let given_up = rig.index.segments.offset(0);
    rig.split(0);
    // A new chunk of segments begins so.
    use_again(&rig, given_up, [0; 64]);
    assert_eq!(wrong_now(&rig, contents), Vec::<String>::new());
}

/// Returns a store with as many keys of one signature as its segment can hold, and the next key.
fn alike() -> (Arc<Rig<Sim>>, Contents, Key) {
    let (rig, mut contents, mut keys) = (store(&some(), None), some(), (2000..).map(|number| key(mixed(1), number)));
    let next = loop {
        let (next, _pin) = (keys.next().unwrap(), epoch::pin());
        let Ok((published, found)) = rig.publish(next, rig.write_item(next, 5)) else { break next };
        rig.finish(published, found);
        contents.insert(next, 5);
    };
    (settled(&rig, None), contents, next)
}

#[test]
fn chained_segment_is_complete_before_linked() {
    let (rig, mut contents, next) = alike();
    let wrong = crashed(&rig, &contents, |rig| rig.split(next.signature));
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(rig.index.split_stats().chained_count, 1);
    as_another(&rig, move |rig| _ = rig.put(next, 5));
    contents.insert(next, 5);
    assert_eq!(wrong_now(&rig, contents), Vec::<String>::new());
}

fn clears(canary: Option<Canary>) -> Vec<String> {
    let rig = store(&some(), canary);
    crashed(&rig, &Contents::new(), Rig::clear)
}

#[test]
fn clear_removes_everything_or_nothing() {
    assert_eq!(clears(None), Vec::<String>::new());
    assert!(!clears(Some(canary::CLEAR_BEFORE_SEGMENTS)).is_empty(), "the broken variant was not caught");
}

/// A log has no fence that makes anything durable.
#[test]
fn clear_is_durable_on_log() {
    let rig = Arc::new(Rig::format(Sim::new(0, Model::Span), PARTITION_COUNT));
    some().iter().for_each(|(&key, &value)| _ = rig.put(key, value));
    rig.clear();
    assert_eq!(wrong_now(&rig, Contents::new()), Vec::<String>::new());
}

/// Returns the next process, after one was killed that had stored but not committed a replacement and an
/// overflowing entry; and the places of the two.
fn killed() -> (Arc<Rig<Sim>>, Contents, Vec<(Key, Slot)>) {
    let (contents, new) = crowded();
    let (rig, _pin) = (store(&contents, None), epoch::pin());
    let written = [*contents.keys().next().unwrap(), new];
    for key in written {
        let position = rig.write_item(key, 9);
        let bucket = rig.index.lock(rig.cx(), key.signature).in_group();
        let found = bucket.find(|position| rig.matching(position, key)).unwrap();
        let _not_committed = match found {
            Some(found) => bucket.replace(&found, position),
            None => bucket.insert(position).unwrap(),
        };
    }
    let entries = rig.index.segments.root().segments().flat_map(|segment| segment.entries(&rig.medium));
    let fresh = entries.filter(|entry| entry.position.is_fresh());
    let slots: Vec<_> =
        fresh.map(|entry| (key(entry.signature, item(&rig.medium, entry.position).0), entry.slot)).collect();
    assert_eq!(slots.len(), written.len());
    let left = rig.medium.killed().expect("something is not durable");
    let rig = Rig::opened(Sim::from_image(&left, Model::Line), PARTITION_COUNT);
    (Arc::new(rig), contents.into_iter().chain(written.map(|key| (key, 9))).collect(), slots)
}

/// Readers take an entry without a mark for durable. It must be so at every step of the sweep that clears the
/// marks.
#[test]
fn swept_marks_are_durable() {
    let (rig, after, slots) = killed();
    let wrong = Wrong::default();
    let noted = Arc::clone(&wrong);
    rig.medium.observe(Box::new(move |medium, kind| {
        let is_settled = |slot: Slot| !Position::from_word(medium.load(slot.position, Ordering::Acquire)).is_fresh();
        for (key, _) in slots.iter().filter(|(_, slot)| is_settled(*slot)) {
            let is_lost =
                |image: &Image| Rig::opened(Sim::from_image(image, Model::Line), PARTITION_COUNT).get(*key) != Some(9);
            let lost = medium.images(IMAGE_COUNT, 7).into_iter().find(is_lost);
            noted.lock().extend(lost.map(|image| format!("{key:?} is lost at {kind:?}, {image}")));
        }
    }));
    rig.sweep();
    rig.medium.unobserve();
    wrong.lock().extend(wrong_now(&rig, after));
    assert_eq!(*wrong.lock(), Vec::<String>::new());
}
