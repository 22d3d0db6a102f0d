//! The persists of operations (HiKV paper, section 3.4.2): two for a put or an update, one for a delete, none for a
//! get.

use pmem::{Counts, lines};

use super::rig::Rig;
use engine::prelude::*;
use items::layout::HEADER_BYTES;

const VALUE_BYTES: usize = 256;
const ITEM_BYTES: u64 = (HEADER_BYTES + 16 + VALUE_BYTES) as u64;

fn key(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

/// A store with a chunk for the items and space in every line for those that a test adds.
fn warm() -> Rig {
    let rig = Rig::new();
    (0..8).for_each(|number| rig.put(&key(number), &[1; VALUE_BYTES]));
    rig
}

/// Returns the number of lines of the key's present item.
fn item_line_count(rig: &Rig, key: &[u8]) -> u64 {
    lines(rig.position(key).offset().span(ITEM_BYTES)).count() as u64
}

/// The cost of a put: the item's lines, one line of the index, and a fence for each of the two.
fn put_cost(rig: &Rig, key: &[u8]) -> Counts {
    Counts { flushed_line_count: item_line_count(rig, key) + 1, fence_count: 2, streamed_bytes: ITEM_BYTES }
}

const DELETE_COST: Counts = Counts { flushed_line_count: 1, fence_count: 1, streamed_bytes: 0 };
const NO_COST: Counts = Counts { flushed_line_count: 0, fence_count: 0, streamed_bytes: 0 };

#[test]
fn put_persists_its_item_and_its_entry() {
    let rig = warm();
    for number in 8..20 {
        let cost = rig.cost(|| rig.put(&key(number), &[2; VALUE_BYTES]));
        assert_eq!(cost, put_cost(&rig, &key(number)));
        assert!((6..=7).contains(&cost.flushed_line_count), "288 bytes lie in 5 or 6 lines");
    }
}

#[test]
fn an_update_costs_what_a_put_does() {
    let rig = warm();
    for round in 0..50 {
        let cost = rig.cost(|| rig.put(&key(round % 8), &[round as u8; VALUE_BYTES]));
        assert_eq!(cost, put_cost(&rig, &key(round % 8)));
    }
}

#[test]
fn streamed_put_costs_what_put_does() {
    let rig = warm();
    let mut source = &[3; VALUE_BYTES][..];
    let cost = rig.cost(|| rig.store.put_from(&key(3), VALUE_BYTES as u64, &mut source).unwrap());
    let item_lines = item_line_count(&rig, &key(3));
    assert_eq!((cost.fence_count, cost.streamed_bytes), (2, ITEM_BYTES));
    assert!((item_lines + 1..=item_lines + 2).contains(&cost.flushed_line_count), "the header may share a line");
}

#[test]
fn puts_of_one_group_persist_together() {
    let rig = warm();
    let keys: Vec<_> = (0..16).map(key).collect();
    let items: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &[4; VALUE_BYTES][..])).collect();
    let cost = rig.cost(|| rig.store.multi_put(&items).unwrap());
    let item_lines: u64 = keys.iter().map(|key| item_line_count(&rig, key)).sum();
    let expected = Counts { flushed_line_count: item_lines + 16, fence_count: 2, streamed_bytes: 16 * ITEM_BYTES };
    assert_eq!(cost, expected);
}

#[test]
fn delete_persists_once() {
    let rig = warm();
    for number in 0..8 {
        assert_eq!(rig.cost(|| assert!(rig.store.delete(&key(number)).unwrap())), DELETE_COST);
        assert_eq!(rig.cost(|| assert!(!rig.store.delete(&key(number)).unwrap())), NO_COST);
    }
}

#[test]
fn reads_persist_nothing() {
    let rig = warm();
    let keys: Vec<[u8; 16]> = (0..16).map(key).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let cost = rig.cost(|| {
        (0..16).for_each(|number| assert_eq!(rig.get(&key(number)).unwrap().is_some(), number < 8));
        let (pin, mut seen) = (epoch::pin(), [None; 16]);
        assert_eq!(rig.store.lookup_many(pin.pinned(), &slices, &mut seen), 16);
        assert_eq!(seen.map(|value| value.is_some()), std::array::from_fn(|number| number < 8));
        rig.store.multi_get(&slices, &mut |_, _| {}).unwrap();
        rig.contents();
    });
    assert_eq!(cost, NO_COST);
}

/// Operations of the long run.
const COUNT: u64 = 20_000;

/// The number of operations, one for each number, that cost other than `usual` fences.
fn unusual_count(rig: &Rig, usual: u64, operation: impl Fn(u64)) -> u64 {
    (0..COUNT).filter(|&number| rig.cost(|| operation(number)).fence_count != usual).count() as u64
}

/// Growth and splits cost more, but only one operation for each chunk and each split.
#[test]
fn only_chunks_and_splits_cost_more() {
    let rig = Rig::new();
    let costly_count = unusual_count(&rig, 2, |number| rig.put(&key(number), &[1; VALUE_BYTES]));
    let (stats, chunk_count) = (rig.store.stats(), rig.store.writer().space().heap().stats().chunk_count);
    assert!(stats.figure("split_count").unwrap() > 10.0 && costly_count > 0);
    assert!(costly_count <= stats.figure("split_count").unwrap() as u64 + chunk_count, "{costly_count} costly puts");
    let costly_count = unusual_count(&rig, 2, |number| rig.put(&key(number), &[2; VALUE_BYTES]));
    assert!(costly_count <= 2 * chunk_count, "{costly_count} costly updates, which fill and empty chunks");
    let costly_count = unusual_count(&rig, 1, |number| assert!(rig.store.delete(&key(number)).unwrap()));
    assert!(costly_count <= 2 * chunk_count, "{costly_count} costly deletes, which empty chunks");
}
