//! Compaction: the items that are moved, the items that stay, and concurrent operations.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use index::Position;
use pmem::{Bytes, Offset, Space};
use pmem_sim::{Model, Sim, StepKind};

use super::rig::{REGION_BYTES, Rig};
use crate::canary;
use engine::prelude::*;
use engine::{CompactionReport, Error, Progress};

/// Slots of this many bytes: 127 to a chunk.
const VALUE_BYTES: usize = 2_000;
const CHUNK_COUNT: u32 = 3;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Fills three chunks with items, and deletes those of the second and third except a few.
fn sparse(rig: &Rig) -> Vec<u32> {
    let count = CHUNK_COUNT * 127;
    (0..count).for_each(|number| rig.put(&key(number), &[number as u8; VALUE_BYTES]));
    let (staying, going): (Vec<u32>, Vec<u32>) = (0..count).partition(|number| *number < 90 || number % 20 == 0);
    going.iter().for_each(|number| assert!(rig.store.delete(&key(*number)).unwrap()));
    rig.free_garbage();
    staying
}

fn assert_holds(rig: &Rig, keys: &[u32]) {
    for number in keys {
        assert_eq!(rig.get(&key(*number)).unwrap(), Some(vec![*number as u8; VALUE_BYTES]), "key {number}");
    }
    assert_eq!(rig.contents().len(), keys.len());
    assert_eq!(rig.damage(), Vec::<String>::new());
}

fn compact(rig: &Rig) -> CompactionReport {
    rig.store.compact(&mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn sparse_chunks_are_gathered_and_freed() {
    let rig = Rig::new();
    let keys = sparse(&rig);
    let before = rig.sim().allocated_bytes().unwrap();
    let compacted = compact(&rig);
    assert!(compacted.moved_items > 5 && compacted.left_items == 0, "{compacted:?}");
    assert_eq!(
        (compacted.taken_bytes_before, Some(compacted.taken_bytes_after)),
        (before, rig.sim().allocated_bytes())
    );
    // Threads of other tests read, and move on.
    rig.free_garbage();
    let again = compact(&rig);
    let freed_bytes = compacted.freed_bytes + again.freed_bytes;
    assert!(freed_bytes >= 2 * (256 << 10) - 2 * 4_096, "{compacted:?} {again:?}");
    assert_eq!(again.moved_items, 0, "nothing was left to gain");
    assert_holds(&rig, &keys);
    assert_holds(&rig.reopened(), &keys);
}

#[test]
fn compaction_needs_only_gaps() {
    let rig = Rig::of_fixed_size();
    let keys = sparse(&rig);
    let compacted = compact(&rig);
    assert!(compacted.moved_items > 5 && compacted.left_items == 0, "{compacted:?}");
    assert_holds(&rig, &keys);
}

#[test]
fn freed_space_is_reused() {
    let rig = Rig::of_fixed_size();
    let keys = sparse(&rig);
    compact(&rig);
    rig.free_garbage();
    compact(&rig);
    rig.sim().fail_grow_after(1);
    (1_000..1_200).for_each(|number| rig.put(&key(number), &[number as u8; VALUE_BYTES]));
    let all: Vec<u32> = keys.into_iter().chain(1_000..1_200).collect();
    assert_holds(&rig, &all);
    assert_holds(&rig.reopened(), &all);
}

#[test]
fn damaged_item_is_reported_and_stays() {
    let rig = Rig::new();
    let keys = sparse(&rig);
    let damaged = *keys.last().expect("some stay");
    let offset = rig.position(&key(damaged)).offset();
    rig.sim().store(offset.plus(32), 0x00BA_D0BA_D0BA_D000, Ordering::Relaxed);
    let compacted = compact(&rig);
    assert_eq!(compacted.damaged, [offset.0]);
    assert_eq!(rig.position(&key(damaged)).offset(), offset);
    assert!(compacted.moved_items > 5);
    assert_eq!(rig.damage().len(), 1);
}

/// A reader keeps a moved item: its slot, and the chunk, become free afterwards.
#[test]
fn pinned_reader_delays_and_does_not_block() {
    let rig = Rig::new();
    let keys = sparse(&rig);
    let read = key(*keys.last().expect("some stay"));
    let found = rig.store.get(&read, &mut |_, _, value| {
        let compacted = compact(&rig);
        assert!(compacted.moved_items > 5, "{compacted:?}");
        assert_eq!(value, [*keys.last().unwrap() as u8; VALUE_BYTES], "the value changed under its reader");
    });
    assert!(found.unwrap());
    rig.free_garbage();
    assert!(compact(&rig).freed_bytes > 0);
    assert_holds(&rig, &keys);
}

/// Once, when the first item was copied and its entry not yet switched, another thread changes all items that are to be
/// moved.
fn changed_meanwhile(sim: Sim, change: impl Fn(&Rig, u32) + Send + Sync + 'static) -> Rig {
    let rig = Arc::new(Rig::on(sim));
    let keys = sparse(&rig);
    let (late, mut has_come) = (Arc::downgrade(&rig), false);
    rig.sim().observe(Box::new(move |_, kind| {
        if kind == StepKind::Stream && !has_come {
            has_come = true;
            let rig = late.upgrade().expect("the rig is compacted");
            keys.iter().filter(|number| **number >= 90).for_each(|number| change(&rig, *number));
        }
    }));
    compact(&rig);
    rig.sim().unobserve();
    Arc::into_inner(rig).expect("the observer is gone")
}

fn line() -> Sim {
    Sim::new(REGION_BYTES, Model::Line)
}

fn replace(rig: &Rig, number: u32) {
    rig.put(&key(number), b"new");
}

fn delete(rig: &Rig, number: u32) {
    assert!(rig.store.delete(&key(number)).unwrap());
}

fn old_values(rig: &Rig) -> usize {
    (90..CHUNK_COUNT * 127)
        .filter(|number| rig.get(&key(*number)).unwrap().is_some_and(|value| value != b"new"))
        .count()
}

#[test]
fn concurrent_writes_survive_compaction() {
    for change in [replace, delete] {
        let rig = changed_meanwhile(line(), change);
        assert_eq!((old_values(&rig), rig.damage()), (0, vec![]));
    }
}

#[test]
fn move_without_second_check_is_caught() {
    for change in [replace, delete] {
        let rig = changed_meanwhile(line().with_canary(canary::MOVE_UNCHECKED), change);
        assert_eq!(old_values(&rig), 1, "the broken variant does not undo the other's write");
    }
}

/// Does the background's steps until no work is left.
fn background(rig: &Rig) {
    while rig.store.step().unwrap() != Progress::Idle {}
}

#[test]
fn the_background_works_above_the_limit_alone() {
    for (above, is_done) in [(Some(1.1), true), (Some(100.0), false), (None, false)] {
        let mut rig = Rig::on(Sim::new(8 << 20, Model::Line));
        rig.store = rig.store.compacting_above(above);
        let keys = sparse(&rig);
        (2_000..2_100).for_each(|number| rig.put(&key(number), &[1; 30_000]));
        (2_000..2_100).for_each(|number| assert!(rig.store.delete(&key(number)).unwrap()));
        rig.free_garbage();
        background(&rig);
        let stats = rig.store.stats().compaction;
        assert_eq!(stats.freed_bytes > 1 << 20, is_done, "above {above:?}: {stats:?}");
        assert_holds(&rig, &keys);
    }
}

/// A check keeps the background from moving anything: the worker should try again later, not immediately.
#[test]
fn background_rests_while_compaction_is_blocked() {
    let mut rig = Rig::on(Sim::new(8 << 20, Model::Line));
    rig.store = rig.store.compacting_above(Some(1.1));
    let large = 2_000..2_200;
    large.clone().for_each(|number| rig.put(&key(number), &[1; 30_000]));
    background(&rig);
    let checking = rig.store.compaction().pause();
    large.for_each(|number| assert!(rig.store.delete(&key(number)).unwrap()));
    rig.free_garbage();
    background(&rig);
    assert!(matches!(rig.store.run_idle_maintenance(), Progress::Rest(_)));
    drop(checking);
    background(&rig);
    rig.free_garbage();
    background(&rig);
    assert_eq!(rig.store.run_idle_maintenance(), Progress::Idle);
    assert!(rig.store.stats().compaction.freed_bytes > 1 << 20);
}

/// The worker should try again later, not immediately, although no thread writes.
#[test]
fn background_retries_blocks_pinned_by_readers() {
    let rig = Rig::new();
    (0..2).for_each(|number| rig.put(&key(number), b"value"));
    let found = rig.store.get(&key(0), &mut |_, _, _| {
        assert!(rig.store.delete(&key(1)).unwrap());
        background(&rig);
        assert!(matches!(rig.store.run_idle_maintenance(), Progress::Rest(_)));
    });
    assert!(found.unwrap());
    rig.free_garbage();
    background(&rig);
    assert_eq!(rig.store.run_idle_maintenance(), Progress::Idle);
}

/// A pass ends while a reader keeps the moved items. Their chunks are too few for the background to count all again.
#[test]
fn moved_items_are_freed_after_readers() {
    let mut rig = Rig::on(Sim::new(8 << 20, Model::Line));
    rig.store = rig.store.compacting_above(Some(1.1));
    let all = 0..7 * 127;
    all.clone().for_each(|number| rig.put(&key(number), &[number as u8; VALUE_BYTES]));
    let (staying, going): (Vec<u32>, Vec<u32>) = all.partition(|number| number % 20 == 0);
    going.iter().for_each(|number| assert!(rig.store.delete(&key(*number)).unwrap()));
    rig.free_garbage();
    let found = rig.store.get(&key(0), &mut |_, _, _| background(&rig)).unwrap();
    let kept = rig.store.stats().compaction;
    assert!(found && kept.moved_items > 20, "{kept:?}");
    while rig.store.run_idle_maintenance() != Progress::Idle {
        background(&rig);
    }
    let freed = rig.store.stats().compaction;
    assert!(freed.freed_bytes > kept.freed_bytes + (1 << 20), "{kept:?} {freed:?}");
    assert_holds(&rig, &staying);
}

/// Makes the entry of `item` name the next grain instead.
fn redirect(sim: &Sim, item: Position) {
    let words = (0..sim.len_bytes()).step_by(8).map(Offset);
    let is_entry = |at: &Offset| Position::from_word(sim.load(*at, Ordering::Relaxed)).item() == item.item();
    let entry = words.into_iter().find(is_entry).expect("the item has an entry");
    sim.store(entry, sim.load(entry, Ordering::Relaxed) + 16, Ordering::Relaxed);
}

#[test]
fn unknown_free_space_prevents_compaction() {
    let rig = Rig::new();
    rig.put(b"key", b"value");
    redirect(rig.sim(), rig.position(b"key"));
    let rig = rig.reopened();
    assert!(matches!(rig.store.compact(&mut |_| ControlFlow::Continue(())), Err(Error::Corrupt { .. })));
}
