//! A log whose writers do not wait: published entries keep their mark. A split waits for removals, because they
//! leave no copy for a mark.

use std::sync::atomic::Ordering;

use pmem::Bytes;

use super::super::Cursor;
use super::plain::Plain;
use super::rig::{Key, Rig, key, mixed};
use crate::Position;

fn word(rig: &Rig<Plain>, key: Key) -> Position {
    let slot = rig.slot(key).expect("it is there");
    Position::from_word(rig.medium.load(slot.position, Ordering::Acquire))
}

#[test]
fn batch_entries_are_marked_until_durable() {
    let (rig, keys) = (Rig::format(Plain::log(), 1), [key(0x77, 1), key(mixed(9), 2)]);
    for value in 1..3 {
        rig.write_batch(&keys.map(|key| (key, Some(value))));
        for key in keys {
            assert!(word(&rig, key).is_fresh(), "a reader would act on {key:?} before a disk has it");
        }
    }
}

/// The removal leaves nothing in the copies that could record that it is not durable.
#[test]
fn split_waits_for_removals() {
    let rig = Rig::format(Plain::log(), 1);
    (0..40).for_each(|number| _ = rig.put(key(mixed(number), number), number));
    let waited_count = rig.medium.waited_count();
    rig.split(0);
    assert_eq!(rig.medium.waited_count(), waited_count, "marks are copied");
    rig.remove(key(mixed(3), 3));
    rig.split(mixed(3));
    assert_eq!(rig.medium.waited_count(), waited_count + 1);
    assert_eq!((rig.get(key(mixed(3), 3)), rig.index.split_stats().split_count), (None, 2));
}

/// Other threads write while an opened store is swept: their entries may not be durable yet.
#[test]
fn sweep_waits_for_what_it_settles() {
    let rig = Rig::format(Plain::log(), 1);
    let put = key(0x77, 1);
    rig.put(put, 1);
    assert!(word(&rig, put).is_fresh());
    let waited_count = rig.medium.waited_count();
    rig.sweep_step(Cursor::default());
    assert_eq!(rig.medium.waited_count(), waited_count + 1);
    assert!(!word(&rig, put).is_fresh());
}
