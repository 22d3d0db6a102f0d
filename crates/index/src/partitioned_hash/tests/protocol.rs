//! Steps that matter only to other threads and processes: to readers, to the sweep, and to the process after a
//! killed one.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::thread;

use heap::{Place, PlaceKind};
use pmem::{Bytes, Canary};
use pmem_sim::{Model, Sim};

use super::super::draft::overflow_word;
use super::super::layout::{Home, LINE_ENTRY_COUNT, OverflowPath};
use super::given_up::lost_in;
use super::rig::{Contents, Key, Rig, key, mixed};
use super::stalls::stepped;
use crate::Position;
use crate::canary;
use word::model::chosen::stepping;

/// Keys of one home line, of different signatures.
fn neighbours() -> impl Iterator<Item = Key> {
    (0..).map(|number| key(0x77 + (number << 59), number))
}

/// Returns a store whose line of [`neighbours`] is full, and the next key of the line.
fn full_line() -> (Rig<Sim>, Key) {
    fill_line(Rig::new(1))
}

fn fill_line(rig: Rig<Sim>) -> (Rig<Sim>, Key) {
    let mut keys = neighbours();
    keys.by_ref().take(LINE_ENTRY_COUNT as usize).for_each(|key| _ = rig.put(key, 1));
    (rig, keys.next().unwrap())
}

/// A reader finds an uncommitted entry of a group, makes the entry durable and acts on it: the overflow bit that
/// leads to the entry must be durable also.
#[test]
fn overflow_bit_is_ordered_before_entry() {
    let (rig, key) = full_line();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let _pin = epoch::pin();
            let bucket = rig.index.lock(rig.cx(), key.signature).in_group();
            let _not_committed = bucket.insert(rig.write_item(key, 2)).unwrap();
        });
        writer.join().unwrap();
    });
    assert_eq!(rig.get(key), Some(2));
    assert_eq!(lost_in(&rig.medium, key, 2), 0);
}

/// A process was killed between the store of an overflow bit and its flush. The next process sees the bit.
fn killed(canary: Option<Canary>) -> (Rig<Sim>, Key) {
    let sim = Sim::new(0, Model::Line);
    let (rig, key) = fill_line(Rig::format(canary.map_or(sim.clone(), |canary| sim.with_canary(canary)), 1));
    let segment = rig.index.segments.offset(key.signature);
    let word = overflow_word(Home::of(key.signature), OverflowPath::Bucket, segment);
    let seen = Position::from_word(rig.medium.load(word, Ordering::Acquire));
    rig.medium.store(word, seen.overflow().word(), Ordering::Release);
    (rig.reopened(), key)
}

#[test]
fn killed_process_data_is_durable_before_use() {
    let (rig, key) = killed(None);
    rig.put(key, 2);
    assert_eq!(lost_in(&rig.medium, key, 2), 0, "by a put");
    let (rig, key) = killed(None);
    rig.write_batch(&[(key, Some(2))]);
    assert_eq!(lost_in(&rig.medium, key, 2), 0, "by a batch");
    let (rig, key) = killed(None);
    let pin = epoch::pin();
    drop(rig.index.lock(rig.cx(), key.signature));
    drop(pin);
    // The fences of the thread that relies on the bit complete nothing of the thread that made it durable.
    thread::scope(|scope| _ = scope.spawn(|| rig.put(key, 2)));
    assert_eq!(lost_in(&rig.medium, key, 2), 0, "by a put after another thread's lookup");
    let (rig, key) = killed(Some(canary::SEGMENT_LEFT_AS_FOUND));
    rig.put(key, 2);
    assert!(lost_in(&rig.medium, key, 2) > 0, "the broken variant was not caught");
}

/// Returns a store that was not swept yet, with keys, and the place of one of them.
fn unswept() -> (Rig<Sim>, Key, Place) {
    let rig = Rig::new(1);
    (0..100).for_each(|number| _ = rig.put(key(mixed(number), number), 1));
    let rig = rig.reopened();
    let (one, _pin) = (key(mixed(0), 0), epoch::pin());
    let bucket = rig.index.lock(rig.cx(), one.signature);
    let found = bucket.find(|position| rig.matching(position, one)).unwrap().unwrap();
    let place = found.position.place().unwrap();
    drop(bucket);
    (rig, one, place)
}

/// A way to remove a key's item from the index.
type Unlink = fn(&Rig<Sim>, Key);

/// The sweep frees everything that it does not reach, unless the item was marked; readers may still read an
/// unlinked item.
#[test]
fn sweep_spares_unlinked_items() {
    let ways: [(&str, Unlink); 4] = [
        ("replaced", |rig, key| _ = rig.put(key, 2)),
        ("removed", |rig, key| _ = rig.remove(key)),
        ("replaced by a batch", |rig, key| rig.write_batch(&[(key, Some(2))])),
        ("removed by a batch", |rig, key| rig.write_batch(&[(key, None)])),
    ];
    for (what, unlink) in ways {
        let (rig, key, place) = unswept();
        let _reader = epoch::pin();
        unlink(&rig, key);
        assert_eq!(rig.heap.sweep().mark_reached(place), Ok(false), "{what}, and it would be freed under a reader");
    }
    let (rig, key, _) = unswept();
    let _reader = epoch::pin();
    let old = Place { offset: rig.index.segments.offset(key.signature), kind: PlaceKind::Segment };
    rig.split(key.signature);
    assert_eq!(rig.heap.sweep().mark_reached(old), Ok(false), "split, and it would be freed under a reader");
}

/// A reader that finds an entry's mark finds the batch, and sees all of it or nothing.
#[test]
fn batch_is_known_while_marks_exist() {
    let (rig, keys) = (Rc::new(stepped()), [key(0x77, 1), key(mixed(9), 2)]);
    keys.into_iter().for_each(|key| _ = rig.put(key, 0));
    for value in 1..4 {
        let (reader, mut is_new, mut step_count) = (Rc::clone(&rig), false, 0);
        let slots = keys.map(|key| rig.slot(key).unwrap());
        let read = move || {
            step_count += 1;
            for (key, slot) in keys.into_iter().zip(slots) {
                let word = Position::from_word(reader.medium.load(slot.position, Ordering::Acquire));
                assert!(!word.is_in_batch() || reader.index.batches.has(slot), "a mark without a batch");
                let found = reader.get(key).unwrap();
                assert!(
                    found == value || found + 1 == value && !is_new,
                    "half of a batch: {found} at step {step_count}"
                );
                is_new |= found == value;
            }
        };
        stepping(read, || rig.write_batch(&keys.map(|key| (key, Some(value)))));
        assert_eq!(keys.map(|key| rig.get(key)), [Some(value); 2]);
    }
}

/// A `clear` during a reader's pin leaves everything to be freed later, as often as it is repeated. Meanwhile the
/// generation number wraps around. Returns the crash images that do not show the present contents.
fn wrong_when_generations_have_come_round(canary: Option<Canary>) -> Vec<String> {
    let sim = Sim::new(0, Model::Line);
    let (rig, one) = (Rig::format(canary.map_or(sim.clone(), |canary| sim.with_canary(canary)), 1), key(0x77, 1));
    rig.put(one, 1);
    let first = rig.index.clear(rig.cx()).unwrap();
    rig.put(one, 2);
    rig.heap.region().set_generation(&rig.medium, u16::MAX);
    let second = rig.index.clear(rig.cx()).unwrap();
    assert_eq!(rig.heap.region().generation(), 0);
    rig.put(one, 3);
    let images = rig.medium.images(200, 7);
    assert!(!images.is_empty());
    let wrong = images.iter().filter(|image| {
        let opened = Rig::try_opened(Sim::from_image(image, Model::Line), 1);
        opened.is_none_or(|opened| opened.contents() != Contents::from([(one, 3)]))
    });
    let wrong = wrong.map(ToString::to_string).collect();
    [first, second].into_iter().for_each(|cleared| cleared.free(rig.cx()));
    assert_eq!((rig.contents(), rig.damage()), (Contents::from([(one, 3)]), vec![]));
    wrong
}

#[test]
fn generations_may_wrap_before_cleared_is_freed() {
    assert_eq!(wrong_when_generations_have_come_round(None), Vec::<String>::new());
    let wrong = wrong_when_generations_have_come_round(Some(canary::CLEARED_UNBURIED));
    assert!(!wrong.is_empty(), "the broken variant was not caught");
}
