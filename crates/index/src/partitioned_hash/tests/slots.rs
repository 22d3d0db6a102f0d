//! The life of one slot: the state after a removal, the reuse, and the bits that outlive the entries.

use std::sync::atomic::Ordering;

use pmem::Bytes;
use pmem_sim::Sim;

use super::super::draft::overflow_word;
use super::super::layout::{Home, LINE_ENTRY_COUNT, OverflowPath};
use super::rig::{Key, Rig, key};
use crate::Position;
use crate::partitioned_hash::Slot;

/// Keys of different signatures and one home line.
pub(super) fn neighbour(number: u64) -> Key {
    key(0x77 + (number << 40), number)
}

fn word(rig: &Rig<Sim>, slot: Slot) -> Position {
    Position::from_word(rig.medium.load(slot.position, Ordering::Acquire))
}

fn has_way(rig: &Rig<Sim>, way: OverflowPath) -> bool {
    let home = Home::of(neighbour(0).signature);
    let segment = rig.index.segments.offset(neighbour(0).signature);
    Position::from_word(rig.medium.load(overflow_word(home, way, segment), Ordering::Acquire)).has_overflow()
}

#[test]
fn removed_entrys_slot_is_reused() {
    let rig = Rig::new(1);
    rig.put(neighbour(0), 1);
    let slot = rig.slot(neighbour(0)).unwrap();
    rig.remove(neighbour(0));
    assert_eq!(word(&rig, slot), Position::EMPTY);
    rig.put(neighbour(1), 2);
    assert_eq!(rig.slot(neighbour(1)), Some(slot));
    assert_eq!(rig.get(neighbour(0)), None);
}

/// Returns a store whose last process died after it published a removal.
fn with_deleted_leftover() -> (Rig<Sim>, Slot) {
    let rig = Rig::on_log();
    rig.put(neighbour(0), 1);
    let slot = rig.slot(neighbour(0)).unwrap();
    let pin = epoch::pin();
    let _never_settled = rig.publish_removal(neighbour(0)).unwrap();
    drop(pin);
    assert!(word(&rig, slot).is_deleted() && word(&rig, slot).is_fresh());
    (rig.reopened(), slot)
}

#[test]
fn deleted_mark_after_crash_is_swept() {
    let (rig, slot) = with_deleted_leftover();
    assert_eq!((rig.get(neighbour(0)), rig.contents().len()), (None, 0));
    rig.sweep();
    assert_eq!((word(&rig, slot), rig.index.len()), (Position::EMPTY, 0));
}

#[test]
fn deleted_mark_after_crash_does_not_block() {
    let (rig, slot) = with_deleted_leftover();
    assert_eq!(rig.put(neighbour(0), 5), None);
    assert_eq!(rig.slot(neighbour(0)), Some(slot), "the search for the key settled the mark");
    rig.sweep();
    assert_eq!((rig.get(neighbour(0)), rig.index.len()), (Some(5), 1));
}

#[test]
fn slot_of_unfinished_removal_is_kept() {
    let rig = Rig::on_log();
    let _pin = epoch::pin();
    rig.put(neighbour(0), 1);
    let slot = rig.slot(neighbour(0)).unwrap();
    let (removal, _) = rig.publish_removal(neighbour(0)).unwrap();
    rig.put(neighbour(1), 2);
    assert_ne!(rig.slot(neighbour(1)), Some(slot));
    removal.settle(&rig.medium).unwrap();
    rig.put(neighbour(2), 3);
    assert_eq!(rig.slot(neighbour(2)), Some(slot));
}

/// A reader settles the mark, a writer reuses the slot, and only then the remover returns to empty it.
#[test]
fn late_remover_spares_other_key() {
    let rig = Rig::on_log();
    let _pin = epoch::pin();
    rig.put(neighbour(0), 1);
    let slot = rig.slot(neighbour(0)).unwrap();
    let (removal, _) = rig.publish_removal(neighbour(0)).unwrap();
    assert_eq!(rig.get(neighbour(0)), None);
    let (put, _) = rig.publish(neighbour(1), rig.write_item(neighbour(1), 2)).unwrap();
    assert_eq!(rig.slot(neighbour(1)), Some(slot));
    removal.settle(&rig.medium).unwrap();
    assert_eq!(rig.get(neighbour(1)), Some(2));
    put.settle(&rig.medium).unwrap();
    assert_eq!(rig.get(neighbour(1)), Some(2));
}

#[test]
fn overflow_bits_outlive_their_entries() {
    let rig = Rig::new(1);
    let count = LINE_ENTRY_COUNT * 8 + 3;
    (0..count).for_each(|number| assert_eq!(rig.put(neighbour(number), number), None));
    let ways = [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further];
    assert!(ways.iter().all(|&way| has_way(&rig, way)));
    (0..LINE_ENTRY_COUNT).for_each(|number| assert_eq!(rig.remove(neighbour(number)), Some(number)));
    assert!(ways.iter().all(|&way| has_way(&rig, way)));
    (LINE_ENTRY_COUNT..count).for_each(|number| assert_eq!(rig.get(neighbour(number)), Some(number)));
    (0..LINE_ENTRY_COUNT).for_each(|number| assert_eq!(rig.put(neighbour(number), 100), None));
    assert!(ways.iter().all(|&way| has_way(&rig, way)));
    assert_eq!(rig.damage(), Vec::<String>::new());
}

/// The bit is set in a word that is published and not settled yet: the settling must neither lose it nor be lost.
#[test]
fn overflow_bit_does_not_block_settling() {
    let rig = Rig::on_log();
    let _pin = epoch::pin();
    let (first, _) = rig.publish(neighbour(0), rig.write_item(neighbour(0), 0)).unwrap();
    (1..=LINE_ENTRY_COUNT).for_each(|number| assert_eq!(rig.put(neighbour(number), number), None));
    assert!(has_way(&rig, OverflowPath::Bucket));
    first.settle(&rig.medium).unwrap();
    let home = Home::of(neighbour(0).signature);
    let segment = rig.index.segments.offset(neighbour(0).signature);
    let settled =
        Position::from_word(rig.medium.load(overflow_word(home, OverflowPath::Bucket, segment), Ordering::Acquire));
    assert!(settled.has_overflow() && !settled.is_fresh() && settled.is_live(), "{settled:?}");
}

#[test]
fn overflow_bit_does_not_block_emptying() {
    let rig = Rig::on_log();
    let _pin = epoch::pin();
    (0..LINE_ENTRY_COUNT).for_each(|number| assert_eq!(rig.put(neighbour(number), number), None));
    let (removal, found) = rig.publish_removal(neighbour(0)).unwrap();
    rig.put(neighbour(LINE_ENTRY_COUNT), 9);
    assert!(has_way(&rig, OverflowPath::Bucket));
    removal.settle(&rig.medium).unwrap();
    assert_eq!(word(&rig, found.slot), Position::EMPTY.overflow());
}
