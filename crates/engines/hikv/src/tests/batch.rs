//! Batches behave like a map, keep the limits, and are read correctly when unfinished.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastrand::Rng;
use heap::layout::batch_word;
use heap::{BatchState, BatchWord};
use parking_lot::Mutex;
use pmem::{Bytes, Canary, Counts, MediumError, Offset};
use pmem_sim::{Image, Model, Sim, StepKind};

use super::read_only::ReadOnly;
use super::rig::{Contents, REGION_BYTES, Rig};
use crate::Ordered;
use crate::salvage::{Finding, Sink, Taken, salvage};
use crate::{HiKv, Parameters};
use engine::prelude::*;
use engine::{BatchOp, Check, Cursor, Depth, Direction, Early, Error, Expiry, Limits, ScanCursor};
use pmem_os::HostDram;

type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn key(number: u32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn write<'a>(
    store: &impl Engine,
    changes: impl IntoIterator<Item = (&'a Vec<u8>, &'a Option<Vec<u8>>)>,
) -> Result<(), Error> {
    let op = |(key, value): (&'a Vec<u8>, &'a Option<Vec<u8>>)| match value {
        Some(value) => BatchOp::Put { key, value },
        None => BatchOp::Delete { key },
    };
    store.write_batch(&changes.into_iter().map(op).collect::<Vec<_>>())
}

fn apply(contents: &mut Contents, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => _ = contents.insert(key.clone(), value.clone()),
            None => _ = contents.remove(key),
        }
    }
}

fn puts(count: u32, value: &[u8]) -> Changes {
    (0..count).map(|number| (key(number), Some(value.to_vec()))).collect()
}

#[test]
fn batches_match_a_map_during_splits() {
    let (rig, mut contents, mut rng) = (Rig::new(), Contents::new(), Rng::with_seed(1));
    for _ in 0..120 {
        let value = |rng: &mut Rng| (rng.u8(..4) > 0).then(|| vec![rng.u8(..); rng.usize(..60)]);
        let changes: Changes = (0..100).map(|_| (key(rng.u32(..4000)), value(&mut rng))).collect();
        write(&rig.store, &changes).unwrap();
        apply(&mut contents, &changes);
    }
    assert!(rig.store.stats().figure("split_count").unwrap() > 0.0 && rig.contents() == contents);
    rig.free_garbage();
    assert_eq!((rig.store.len().unwrap(), rig.damage()), (contents.len() as u64, vec![]));
    let used = rig.store.stats().live_bytes;
    let rig = rig.reopened();
    assert!(rig.contents() == contents && rig.store.len().unwrap() == contents.len() as u64);
    assert_eq!(rig.store.stats().live_bytes, used, "old items and records were freed");
}

#[test]
fn the_last_operation_of_a_key_counts() {
    let rig = Rig::new();
    let (put, delete) = (|value| BatchOp::Put { key: b"key", value }, BatchOp::Delete { key: b"key" });
    rig.store.write_batch(&[put(b"1"), delete, put(b"2")]).unwrap();
    assert_eq!(rig.get(b"key").unwrap(), Some(b"2".to_vec()));
    rig.store.write_batch(&[put(b"3"), delete]).unwrap();
    assert_eq!((rig.get(b"key").unwrap(), rig.store.len().unwrap()), (None, 0));
}

#[test]
fn batch_over_limit_is_refused() {
    const VALUE_BYTES: usize = 64 << 20;
    let (rig, value) = (Rig::new(), vec![0; VALUE_BYTES]);
    let keys: Vec<_> = (0..16).map(key).collect();
    let ops: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: &value }).collect();
    let error = rig.store.write_batch(&ops).unwrap_err();
    let len_bytes = 16 * (VALUE_BYTES as u64 + 4 + Limits::BATCH_OP_BYTES);
    assert!(matches!(error, Error::BatchTooLong { len_bytes: said } if said == len_bytes));
    let wanted = format!("the batch has {len_bytes} bytes, 512 for each operation; the limit is 1073741824");
    assert_eq!((error.to_string(), rig.contents().len()), (wanted, 0));
}

/// More than a segment holds, and than fits into the largest slot as a record.
const LARGE_OP_COUNT: u32 = 12_000;

/// The region around each fence of a large batch, and at some steps between, in several crashes each. Returns the
/// number of crashes, and of those that show a part of the batch.
fn large(canary: Option<Canary>) -> (usize, usize) {
    let sim = Sim::new(REGION_BYTES, Model::Line);
    let rig = Rig::on(canary.map_or(sim.clone(), |canary| sim.with_canary(canary)));
    write(&rig.store, &puts(LARGE_OP_COUNT, b"old")).unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let (noted, mut flushed, mut step_count) = (Arc::clone(&images), 0, 0u64);
    rig.sim().observe(Box::new(move |sim, kind| {
        let word = sim.load(batch_word(0), Ordering::Acquire);
        let is_word = kind == StepKind::Flush && word != flushed;
        flushed = if is_word { word } else { flushed };
        step_count += 1;
        if is_word || [StepKind::Order, StepKind::Commit].contains(&kind) || step_count.is_multiple_of(9_001) {
            noted.lock().extend(sim.images(4, step_count));
        }
    }));
    write(&rig.store, &puts(LARGE_OP_COUNT, b"new")).unwrap();
    rig.sim().unobserve();
    let images = std::mem::take(&mut *images.lock());
    let is_whole = |image: &Image| {
        let Ok(store) = HiKv::open(Sim::from_image(image, Model::Line), HostDram) else { return false };
        let found = contents(&store);
        found.len() == LARGE_OP_COUNT as usize
            && [b"old", b"new"].iter().any(|one| found.values().all(|value| value == *one))
    };
    (images.len(), images.iter().filter(|image| !is_whole(image)).count())
}

#[test]
fn large_batch_is_atomic_over_crash() {
    let (image_count, half_count) = large(None);
    assert!(image_count > 20 && half_count == 0, "{half_count} of {image_count} images have half of it");
    for canary in [index::canary::BATCH_BEFORE_RECORD, index::canary::BATCH_BEFORE_ENTRIES, index::canary::HALF_BATCH] {
        assert!(large(Some(canary)).1 > 0, "{canary:?} was not caught");
    }
}

#[test]
fn refused_or_empty_batch_changes_nothing() {
    let rig = Rig::new();
    rig.put(b"key", b"value");
    let nothing = Counts { flushed_line_count: 0, fence_count: 0, streamed_bytes: 0 };
    let (delete, longest) = (BatchOp::Delete { key: b"key" }, vec![0; Limits::KEY_BYTES_MAX + 1]);
    for refused in [BatchOp::Delete { key: &longest }, BatchOp::Put { key: &longest, value: b"" }] {
        let cost = rig.cost(|| {
            let error = rig.store.write_batch(&[delete, refused]).unwrap_err();
            assert!(matches!(error, Error::KeyTooLong { len_bytes: 65_536 }));
        });
        assert_eq!(cost, nothing);
    }
    assert_eq!(rig.cost(|| rig.store.write_batch(&[]).unwrap()), nothing);
    assert_eq!(rig.get(b"key").unwrap(), Some(b"value".to_vec()));
}

/// One each: items and record; the word that names it; marked entries; the word that commits; entries; the word.
#[test]
fn batch_costs_six_fences_whatever_it_holds() {
    let rig = Rig::new();
    for count in [1, 2, 40] {
        // The first one of this length may need a chunk for its record.
        write(&rig.store, &puts(count, b"1")).unwrap();
        let cost = rig.cost(|| write(&rig.store, &puts(count, b"2")).unwrap());
        assert_eq!(cost.fence_count, 6, "{count} operations");
    }
    let missing = Changes::from([(key(70), None), (key(71), None)]);
    assert_eq!(rig.cost(|| write(&rig.store, &missing).unwrap()).fence_count, 0);
}

#[test]
fn batch_without_space_changes_nothing() {
    let rig = Rig::of_fixed_size();
    let mut count = 0;
    let error = loop {
        let changes: Changes = (count..count + 100).map(|number| (key(number), Some(vec![7; 4_000]))).collect();
        match write(&rig.store, &changes) {
            Ok(()) => count += 100,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Medium(MediumError::Full { .. })), "{error}");
    assert!(count > 0 && rig.contents().len() == count as usize);
    rig.free_garbage();
    let live_bytes = rig.store.stats().live_bytes;
    assert!(write(&rig.store, &puts(count, &[8; 4_000])).is_err());
    assert_eq!((rig.damage(), rig.store.stats().live_bytes), (vec![], live_bytes));
    assert!(rig.contents().values().all(|value| value == &[7; 4_000]));
    (0..count).for_each(|number| assert!(rig.store.delete(&key(number)).unwrap()));
    rig.free_garbage();
    write(&rig.store, &puts(count, &[9; 1_000])).unwrap();
    assert_eq!(rig.store.len().unwrap(), u64::from(count));
}

/// The regions after each step of `work`, if all stores survived.
fn steps(sim: &Sim, work: impl FnOnce()) -> Vec<Image> {
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim, _| noted.lock().extend(sim.images(2, 0).pop())));
    work();
    sim.unobserve();
    std::mem::take(&mut *images.lock())
}

fn contents(store: &impl Engine) -> Contents {
    let (mut cursor, mut contents) = (Cursor::default(), Contents::new());
    while !cursor.is_done() {
        cursor = store.walk(cursor, &mut |key, value, _| _ = contents.insert(key.to_vec(), value.to_vec())).unwrap();
    }
    contents
}

/// A read-only store shows an unfinished batch completely or not at all, by every way of reading, and stores nothing.
#[test]
fn unfinished_batch_is_read_atomically() {
    let rig = Rig::new();
    write(&rig.store, &puts(4, b"old")).unwrap();
    let old = rig.contents();
    let changes = Changes::from([(key(1), None), (key(2), Some(b"new".to_vec())), (key(9), Some(b"new".to_vec()))]);
    let images = steps(rig.sim(), || write(&rig.store, &changes).unwrap());
    let new = rig.contents();
    let mut seen = [0, 0];
    for image in images {
        let store = HiKv::open(ReadOnly(Sim::from_image(&image, Model::Line)), HostDram).unwrap();
        let found = contents(&store);
        assert!(found == old || found == new, "half of it: {found:?}");
        seen[usize::from(found == new)] += 1;
        for number in 0..10 {
            let mut value = None;
            store.get(&key(number), &mut |_, _, found| value = Some(found.to_vec())).unwrap();
            assert_eq!(value.as_ref(), found.get(&key(number)));
        }
        assert_eq!(store.len().unwrap(), found.len() as u64);
        assert!(damage_of(&store).is_empty());
    }
    assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
}

fn damage_of(store: &dyn Engine) -> Vec<String> {
    let (mut check, mut damage) = (Check::new(Depth::Deep), vec![]);
    while !check.is_done() {
        store.check(&mut check, &mut |found| damage.push(found.what)).unwrap();
    }
    damage
}

/// The region during a batch whose word has this state, and the place of the batch's record.
fn interrupted(state: BatchState) -> (Sim, Offset) {
    let rig = Rig::new();
    write(&rig.store, &puts(2, b"old")).unwrap();
    let images = steps(rig.sim(), || write(&rig.store, &puts(3, b"new")).unwrap());
    let sims = images.iter().map(|image| Sim::from_image(image, Model::Line));
    let word = |sim: &Sim| BatchWord::load(sim, 0).unwrap();
    let of_state = |sim: Sim| word(&sim).filter(|word| word.state == state).map(|word| (sim, word.record));
    // The last such region: all entries are marked, or none any more.
    sims.filter_map(of_state).next_back().expect("the batch had this state")
}

#[test]
fn damaged_batch_record_is_refused_and_named() {
    for state in [BatchState::Prepared, BatchState::Committed] {
        let (_, record) = interrupted(state);
        for (at, named, what) in [
            (batch_word(0), batch_word(0), "a batch word does not fit its check"),
            (record, record, "a batch's record does not match its checksum"),
            (record.plus(16), record, "a batch's record does not match its checksum"),
        ] {
            let (sim, _) = interrupted(state);
            sim.store(at, sim.load(at, Ordering::Relaxed) ^ 1 << 9, Ordering::Relaxed);
            let error = HiKv::open(sim, HostDram).err().expect("it is damaged").to_string();
            assert!(error.contains(what) && error.contains(&format!("{:#x}", named.0)), "{error}");
        }
    }
}

/// A mark without a batch: the word is read without the mark, and the check reports it.
#[test]
fn mark_without_batch_is_found_by_check() {
    let (sim, _) = interrupted(BatchState::Prepared);
    sim.store(batch_word(0), 0, Ordering::Relaxed);
    let store = HiKv::open(sim, HostDram).unwrap();
    assert!(contents(&store).values().all(|value| value == b"new"));
    assert_eq!(damage_of(&store), ["an entry is marked as part of a batch that does not exist"; 3]);
    write(&store, &puts(3, b"newer")).unwrap();
    assert_eq!((damage_of(&store), contents(&store).len()), (vec![], 3));
}

fn ordered() -> HiKv<Sim, HostDram> {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 4, region_bytes: REGION_BYTES };
    let store = HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap();
    store.keeping_order(Ordered::new(1, HostDram))
}

fn scanned(store: &HiKv<Sim, HostDram>) -> Contents {
    let (ordered, mut contents) = (store.ordered().unwrap(), Contents::new());
    ordered.catch_up(Early::Wait).unwrap();
    let mut cursor = ScanCursor::new(Bound::Unbounded, Direction::Forward);
    let mut each = |key: &[u8], value: &[u8]| {
        contents.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    while ordered.scan(&mut cursor, &mut each).unwrap() {}
    contents
}

/// More changes than the queue holds: batches make space for themselves, pinned or not.
#[test]
fn full_queue_keeps_batches_in_order() {
    let (store, mut expected) = (ordered(), Contents::new());
    assert_eq!(scanned(&store), expected);
    for round in 0..6u32 {
        let changes: Changes = (0..1000).map(|i| (key(round * 500 + i), Some(vec![round as u8; 5]))).collect();
        write(&store, &changes).unwrap();
        apply(&mut expected, &changes);
    }
    let deleted: Changes = (0..1000).map(|i| (key(i * 3), None)).collect();
    store.get(&key(1), &mut |_, _, _| write(&store, &deleted).unwrap()).unwrap();
    apply(&mut expected, &deleted);
    assert!(scanned(&store) == expected && contents(&store) == expected);
}

/// One batch of more changes than the queue has places, pinned or not.
#[test]
fn batch_larger_than_queue_is_in_order() {
    let (store, mut expected) = (ordered(), Contents::new());
    assert_eq!(scanned(&store), expected);
    for (count, value) in [(10_000, Some(&b"1"[..])), (9_000, Some(b"2")), (6_000, None)] {
        let changes: Changes = (0..count).map(|i| (key(i), value.map(<[u8]>::to_vec))).collect();
        store.get(&key(9_999), &mut |_, _, _| write(&store, &changes).unwrap()).unwrap();
        if expected.is_empty() {
            write(&store, &changes).unwrap();
        }
        apply(&mut expected, &changes);
        assert!(scanned(&store) == expected && contents(&store) == expected);
    }
}

/// The number of changes that wait for the ordered index is bounded: a batch that finds more than the queue has places
/// applies them first.
#[test]
fn unapplied_batch_changes_are_bounded() {
    const OP_COUNT: u32 = 5000;
    let store = ordered();
    assert_eq!(scanned(&store), Contents::new());
    for round in 0..8u8 {
        write(&store, &puts(OP_COUNT, &[round])).unwrap();
        let queued_count = store.stats().order.unwrap().queued_count;
        assert!((1000..4096 + u64::from(OP_COUNT) + 8).contains(&queued_count), "{queued_count} wait");
    }
    assert!(scanned(&store) == contents(&store) && contents(&store).values().all(|value| value == &[7]));
}

/// The items that a salvage takes.
#[derive(Default)]
struct Salvaged {
    contents: Contents,
    findings: Vec<String>,
}

impl Sink for Salvaged {
    fn take(&mut self, key: &[u8], value: &[u8], _: Expiry) -> Result<Taken, Error> {
        self.contents.insert(key.to_vec(), value.to_vec());
        Ok(Taken::New)
    }

    fn found(&mut self, finding: Finding) {
        self.findings.push(finding.what);
    }

    fn progress(&mut self, _: u64, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn salvage_takes_what_interrupted_batch_decides() {
    for (state, count, value) in [(BatchState::Prepared, 2, b"old"), (BatchState::Committed, 3, b"new")] {
        let (sim, _) = interrupted(state);
        let mut salvaged = Salvaged::default();
        salvage(&sim, true, &mut salvaged).unwrap();
        assert_eq!((salvaged.contents.len(), salvaged.findings), (count, vec![]));
        assert!(salvaged.contents.values().all(|found| found == value));
    }
}

#[test]
fn salvage_reports_unreadable_batch() {
    let (sim, record) = interrupted(BatchState::Prepared);
    sim.store(record, 0, Ordering::Relaxed);
    let mut salvaged = Salvaged::default();
    salvage(&sim, true, &mut salvaged).unwrap();
    assert!(salvaged.findings.iter().any(|what| what.contains("a batch that cannot be read")));
}
