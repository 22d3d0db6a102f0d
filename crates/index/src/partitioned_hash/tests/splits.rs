//! Splits keep the entries that they move, and occur late enough.

use super::super::layout::SEGMENT_ENTRY_COUNT;
use super::rig::{Contents, Rig, assert_same, key, mixed};
use crate::segmented::Segmented;

/// Keys of distinct, evenly spread signatures.
fn filled(partition_count: u32, count: u64) -> (Rig<pmem_sim::Sim>, Contents) {
    let (rig, mut contents) = (Rig::new(partition_count), Contents::new());
    for number in 0..count {
        assert_eq!(rig.put(key(mixed(number), number), number), None);
        contents.insert(key(mixed(number), number), number);
    }
    (rig, contents)
}

#[test]
fn splits_keep_every_entry_and_directories_double() {
    let (rig, contents) = filled(2, 40_000);
    assert_same(&rig.contents(), &contents);
    for (&key, &value) in &contents {
        assert_eq!(rig.get(key), Some(value));
    }
    for partition in 0..2 {
        let depth = rig.index.segments.root().directory(partition).depth();
        assert!((5..=8).contains(&depth), "partition {partition} has depth {depth}");
    }
    assert_eq!((rig.index.len(), rig.damage()), (40_000, vec![]));
}

#[test]
fn segments_split_at_three_quarters() {
    let (rig, _) = filled(4, 60_000);
    let stats = rig.index.split_stats();
    let load = stats.split_entry_count as f64 / (stats.split_count * SEGMENT_ENTRY_COUNT) as f64;
    assert!(stats.split_count > 50 && load >= 0.75, "{load} over {} splits", stats.split_count);
    assert_eq!(stats.chained_count, 0, "evenly spread signatures need no chain");
}

#[test]
fn reopening_finds_the_same_entries_and_directories() {
    let (mut rig, mut contents) = filled(2, 20_000);
    for (&gone, _) in contents.clone().iter().step_by(3) {
        assert_eq!(rig.remove(gone), contents.remove(&gone));
    }
    let segment_count = rig.index.segment_count();
    for _ in 0..2 {
        rig = rig.reopened();
        assert_same(&rig.contents(), &contents);
        rig.sweep();
        assert_eq!(rig.index.len(), contents.len() as u64);
        assert_eq!((rig.index.segment_count(), rig.damage()), (segment_count, vec![]));
    }
}

/// Signatures with equal upper bits: the directory doubles far beyond the number of segments.
#[test]
fn common_prefix_makes_directory_deep() {
    const PREFIX_BITS: u32 = 12;
    let (rig, mut contents) = (Rig::new(1), Contents::new());
    for number in 0..4000 {
        let key = key(mixed(number) >> PREFIX_BITS | 0x5A5 << (64 - PREFIX_BITS), number);
        rig.put(key, number);
        contents.insert(key, number);
    }
    assert_same(&rig.contents(), &contents);
    let rig = rig.reopened();
    assert_same(&rig.contents(), &contents);
}

#[test]
fn splits_on_demand_reach_many_levels() {
    let (rig, contents) = filled(1, 3000);
    for _ in 0..6 {
        let prefixes: Vec<u64> = rig
            .index
            .segments
            .root()
            .segments()
            .map(|segment| segment.prefix() << 1 << (63 - segment.depth()))
            .collect();
        prefixes.into_iter().for_each(|signature| rig.split(signature));
    }
    assert!(rig.index.segments.root().directory(0).depth() >= 7);
    assert_same(&rig.contents(), &contents);
    assert_eq!((rig.index.len(), rig.damage()), (3000, vec![]));
}
