//! A reader that begins while a writer is stopped before a store, and that is itself stopped before a load while the
//! writer ends: at every pair of such places. The reader's result was correct at some time between its begin and end.
//!
//! Not covered: writers that continue only in part, and reorderings; see `index`'s `block_hash::tests::interleavings`.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use engine::Progress;
use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use index::block_hash::canary;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::hooked::{Access, Hooked, hook};
use crate::splits::{first_of, key};
use crate::subject::{PARAMETERS, buckets};

thread_local! {
    /// This thread's accesses until it stops: the writer's stores, the reader's loads.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
    static STAND: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs `stand` on this thread before access number `left` from now on.
fn stand_before(left: u64, stand: impl FnOnce() + 'static) {
    hook(access);
    STAND.set(Some(Box::new(stand)));
    LEFT.set(Some(left));
}

/// Handles an access of this thread.
fn access(access: Access) {
    if access != if IS_WRITER.get() { Access::Store } else { Access::Load } {
        return;
    }
    match LEFT.get() {
        Some(0) => {
            LEFT.set(None);
            STAND.take().expect("there is something to do")();
        }
        Some(left) => LEFT.set(Some(left - 1)),
        None => {}
    }
}

type Store = RewoHash<Hooked, HostDram>;

/// Returns a store of `key_count` keys; for a suitable number, the put of the next key moves an item.
fn filled(key_count: u32, parameters: &Parameters, broken: Option<Canary>) -> Arc<Store> {
    let sim = Sim::new(0, Model::Line);
    let sim = if let Some(broken) = broken { sim.with_canary(broken) } else { sim };
    let store = RewoHash::format(Hooked::on(sim), HostDram, parameters).unwrap();
    (0..key_count).for_each(|i| store.put(&key(i), b"old").unwrap());
    Arc::new(store)
}

/// The result of a stopped writer and a stopped reader.
struct Ended {
    found: Option<Vec<u8>>,
    /// True if the thread reached the place where it was to stop.
    writer_stood: bool,
    reader_stood: bool,
}

/// Reads the key while the writer is stopped before its store number `store_count`; the writer ends before the reader's
/// load number `load_count`.
fn stalled(
    store: &Arc<Store>,
    read: &[u8],
    (store_count, load_count): (u64, u64),
    write: impl FnOnce(&Store) + Send + 'static,
) -> Ended {
    let ((stands, is_standing), (go, may_go), (ends, has_ended)) = (channel(), channel(), channel());
    let theirs = Arc::clone(store);
    let writer = thread::spawn(move || {
        IS_WRITER.set(true);
        let stood = stands.clone();
        stand_before(store_count, move || {
            stood.send(true).unwrap();
            may_go.recv().unwrap();
        });
        write(&theirs);
        LEFT.set(None);
        let _ = stands.send(false);
        ends.send(()).unwrap();
    });
    let writer_stood = is_standing.recv().unwrap();
    let wait = move || {
        let _ = go.send(());
        has_ended.recv().unwrap();
    };
    stand_before(load_count, wait);
    let mut found = None;
    store.get(read, &mut |_, _, value| found = Some(value.to_vec())).unwrap();
    LEFT.set(None);
    let left = STAND.take();
    let reader_stood = left.is_none();
    left.into_iter().for_each(|wait| wait());
    writer.join().unwrap();
    Ended { found, writer_stood, reader_stood }
}

/// Returns true if the reader's result is correct at every pair of places, and the number of pairs.
fn explore(
    store: impl Fn() -> Arc<Store>,
    read: &[u8],
    write: impl Fn(&Store) + Clone + Send + 'static,
    is_well: impl Fn(Option<&[u8]>) -> bool,
) -> (bool, u64) {
    let mut count = 0;
    for store_count in 0.. {
        let mut writer_stood = true;
        for load_count in 0.. {
            let ended = stalled(&store(), read, (store_count, load_count), write.clone());
            writer_stood = ended.writer_stood;
            count += 1;
            if !is_well(ended.found.as_deref()) {
                return (false, count);
            }
            if !ended.reader_stood {
                break;
            }
        }
        if !writer_stood {
            break;
        }
    }
    (true, count)
}

/// Reads an item that moves. The seed decides which item: one that moves from the bucket that is read second into the
/// one that is read first is missed without the counters.
fn reads_what_moves(hash_seed: u64, broken: Option<Canary>) -> (bool, u64) {
    let parameters = Parameters { hash_seed, ..PARAMETERS };
    let last = first_of("move_count", &parameters);
    let probe = filled(last, &parameters, None);
    let before = buckets(&*probe);
    probe.put(&key(last), b"old").unwrap();
    let after = buckets(&*probe);
    let (moved, _) = before.into_iter().find(|at| !after.contains(at)).expect("an item moved");
    let write = move |store: &Store| store.put(&key(last), b"old").unwrap();
    explore(|| filled(last, &parameters, broken), &moved, write, |found| found == Some(b"old"))
}

/// Returns a store of so many keys whose background moves items out of full buckets.
fn crowded(key_count: u32, parameters: &Parameters, broken: Option<Canary>) -> Arc<Store> {
    let store = Arc::into_inner(filled(key_count, parameters, broken)).expect("there is one reference");
    Arc::new(store.pre_evicting(true))
}

fn settle(store: &Store) {
    while store.step().unwrap() == Progress::More {}
}

/// Reads an item that the background moves ahead of inserts.
fn reads_what_is_evicted(hash_seed: u64, broken: Option<Canary>) -> (bool, u64) {
    let parameters = Parameters { hash_seed, ..PARAMETERS };
    let moved = |count: u32| {
        let store = crowded(count, &parameters, None);
        let before = buckets(&*store);
        settle(&store);
        let after = buckets(&*store);
        before.into_iter().find(|at| !after.contains(at)).map(|(key, _)| (count, key))
    };
    let (count, moved) = (100..400).step_by(10).find_map(moved).expect("a bucket is full");
    explore(|| crowded(count, &parameters, broken), &moved, settle, |found| found == Some(b"old"))
}

/// Reads a key whose slots are refilled with other values again and again.
fn reads_what_is_refilled(broken: Option<Canary>) -> (bool, u64) {
    const KEY: &[u8] = b"a key of 16 byte";
    let store = || {
        let store = filled(0, &PARAMETERS, broken);
        store.put(KEY, &[9; 9]).unwrap();
        store
    };
    let write = |store: &Store| (0..4u8).for_each(|round| store.put(KEY, &[round; 9]).unwrap());
    let is_one = |value: &[u8]| value.len() == 9 && value.iter().all(|byte| *byte == value[0]);
    explore(store, KEY, write, |found| found.is_some_and(is_one))
}

#[test]
fn mid_move_reader_sees_consistent_value() {
    for seed in 1..=2 {
        let (is_well, count) = reads_what_moves(seed, None);
        assert!(is_well && count > 100, "{seed}: {count}");
    }
    let (is_well, count) = reads_what_is_refilled(None);
    assert!(is_well && count > 100, "{count}");
    let (is_well, count) = reads_what_is_evicted(1, None);
    assert!(is_well && count > 100, "{count}");
}

/// During a move, the reader has to check the counter of the bucket that the item leaves, whichever of the two that is.
#[test]
fn one_counter_reader_is_caught() {
    for canary in [canary::FIRST_COUNTER_IGNORED, canary::SECOND_COUNTER_IGNORED] {
        let is_well = |seed| reads_what_moves(seed, Some(canary)).0;
        let is_refill_well = || reads_what_is_refilled(Some(canary)).0;
        assert!(!is_refill_well() || !(1..=4).all(is_well), "{canary:?}");
    }
}

#[test]
fn bucket_that_is_not_counted_is_caught() {
    let is_well = |seed| reads_what_moves(seed, Some(canary::REFILL_NOT_COUNTED)).0;
    assert!(!(1..=4).all(is_well), "a move");
    assert!(!reads_what_is_refilled(Some(canary::REFILL_NOT_COUNTED)).0, "a refill");
    let is_well = |seed| reads_what_is_evicted(seed, Some(canary::MOVE_NOT_COUNTED)).0;
    assert!(!(1..=4).all(is_well), "a move ahead of inserts");
}
