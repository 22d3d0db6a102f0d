//! More entries of one signature than a segment holds: splitting frees no space, chaining does.

use super::super::layout::SEGMENT_ENTRY_COUNT;
use super::rig::{Contents, Rig, assert_same, key, mixed};

const SIGNATURE: u64 = 0x0123_4567_89AB_CDEF;

fn filled(alike_count: u64, mixed_count: u64) -> (Rig<pmem_sim::Sim>, Contents) {
    let (rig, mut contents) = (Rig::new(1), Contents::new());
    let alike = (0..alike_count).map(|number| key(SIGNATURE, number));
    let mixed = (0..mixed_count).map(|number| key(mixed(number), number));
    for (value, key) in (0..).zip(alike.chain(mixed)) {
        assert_eq!(rig.put(key, value), None);
        contents.insert(key, value);
    }
    (rig, contents)
}

fn assert_holds(rig: &Rig<pmem_sim::Sim>, contents: &Contents) {
    assert_same(&rig.contents(), contents);
    for (&key, &value) in contents {
        assert_eq!(rig.get(key), Some(value));
    }
    assert_eq!((rig.index.len(), rig.damage()), (contents.len() as u64, vec![]));
}

#[test]
fn thousand_entries_of_one_signature_work() {
    let (rig, mut contents) = filled(1000, 0);
    assert!(rig.index.split_stats().chained_count > 0);
    assert_holds(&rig, &contents);
    for number in (0..1000).step_by(3) {
        let key = key(SIGNATURE, number);
        assert_eq!(rig.put(key, number + 7), contents.insert(key, number + 7));
    }
    for number in (0..1000).step_by(2) {
        let key = key(SIGNATURE, number);
        assert_eq!(rig.remove(key), contents.remove(&key));
        assert_eq!(rig.remove(key), None);
    }
    assert_holds(&rig, &contents);
}

#[test]
fn free_chain_entries_are_reused() {
    let (rig, mut contents) = filled(1000, 0);
    let chained_count = rig.index.split_stats().chained_count;
    for round in 1..6 {
        for number in 0..500 {
            let (old, new) = (key(SIGNATURE, (round - 1) * 500 + number), key(SIGNATURE, (round + 1) * 500 + number));
            assert_eq!(rig.remove(old), contents.remove(&old));
            assert_eq!(rig.put(new, round), contents.insert(new, round));
        }
    }
    assert_holds(&rig, &contents);
    assert_eq!(rig.index.split_stats().chained_count, chained_count);
}

#[test]
fn crowded_signature_does_not_block_split() {
    let (rig, contents) = filled(1000, 700);
    assert_holds(&rig, &contents);
    let rig = rig.reopened();
    rig.sweep();
    assert_holds(&rig, &contents);
}

#[test]
fn chain_outlives_split_of_its_segment() {
    let (rig, mut contents) = filled(1000, 700);
    let split_count = rig.index.split_stats().split_count;
    for number in 700..700 + 4 * SEGMENT_ENTRY_COUNT {
        rig.put(key(mixed(number), number), number);
        contents.insert(key(mixed(number), number), number);
    }
    assert!(rig.index.split_stats().split_count > split_count);
    assert_holds(&rig, &contents);
}

/// Batches of a size that exceeds the free entries of the chain, although there are some.
#[test]
fn batch_of_one_signature_chains_segments() {
    let (rig, mut contents) = filled(900, 20);
    for round in 0..4 {
        let changes: Vec<_> =
            (0..700).map(|number| (key(SIGNATURE, 900 + round * 700 + number), Some(round))).collect();
        rig.write_batch(&changes);
        contents.extend(changes.into_iter().filter_map(|(key, value)| Some((key, value?))));
        assert_holds(&rig, &contents);
    }
    let removed: Vec<_> = contents.keys().copied().step_by(3).map(|key| (key, None)).collect();
    rig.write_batch(&removed);
    removed.iter().for_each(|(key, _)| _ = contents.remove(key));
    assert_holds(&rig, &contents);
    let rig = rig.reopened();
    rig.sweep();
    assert_holds(&rig, &contents);
}
