//! Tests in which threads write, read, scan and clear one store concurrently, for errors that histories of single keys
//! do not show.
//!
//! Each function panics if a promise is broken. The caller checks afterwards that the store is sound.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::{BatchOp, CurrentItem, Decision, Direction, Engine, ScanCursor};
use pmem_sim::{Crashable, Model, Sim, SimDisk};

use crate::contend::{Contention, contend};
use crate::crashed::{Crashed, Made};
use crate::extent::Extent;
use crate::paired::Paired;
use crate::subject::{Operations, Subject};

const THREAD_COUNT: u64 = 4;
const ROUND_COUNT: u64 = 400;

fn number(store: &dyn Engine, key: &[u8]) -> Option<u64> {
    let mut number = None;
    store.get(key, &mut |_, _, value| number = value.first_chunk().map(|&word| u64::from_le_bytes(word))).unwrap();
    number
}

fn add_one(store: &dyn Engine, key: &[u8]) {
    let mut add = |held: Option<CurrentItem<'_>>| {
        let before = held.map_or(0, |held| u64::from_le_bytes(*held.value.first_chunk().unwrap()));
        Decision::Put((before + 1).to_le_bytes().to_vec().into())
    };
    assert!(store.update(key, &mut add).unwrap());
}

/// Every thread increments the same counters while its own keys come and go. No increment is lost.
///
/// # Panics
/// If an increment is lost.
pub fn counts_are_kept(store: &dyn Engine) {
    thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            scope.spawn(move || {
                for round in 0..ROUND_COUNT {
                    add_one(store, &[b'c', (round % 5) as u8 * 50]);
                    let own = [b'c', (round * 7 % 250) as u8, thread as u8 + 1];
                    store.put(&own, &round.to_le_bytes()).unwrap();
                    assert_eq!(number(store, &own), Some(round));
                    if round % 3 == 0 {
                        assert!(store.delete(&own).unwrap());
                    }
                }
            });
        }
    });
    let total: u64 = (0..5).map(|i| number(store, &[b'c', i * 50]).unwrap()).sum();
    assert_eq!(total, THREAD_COUNT * ROUND_COUNT);
}

/// Scans that run concurrently with a writer show keys in order, each key once, and every key that exists throughout.
///
/// # Panics
/// If a scan does not.
pub fn scans_are_in_order(store: &dyn Engine) {
    (0..200u8).step_by(2).for_each(|i| store.put(&[i], &[i; 8]).unwrap());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUND_COUNT * 4 {
                let key = [(round * 37 % 200) as u8 | 1];
                if round % 2 == 0 { store.put(&key, b"odd").unwrap() } else { drop(store.delete(&key)) }
            }
            done.store(true, Ordering::Release);
        });
        let mut is_last = false;
        while !is_last {
            is_last = done.load(Ordering::Acquire);
            let [forward, mut backward] =
                [Direction::Forward, Direction::Backward].map(|direction| keys(store, direction));
            backward.reverse();
            for keys in [forward, backward] {
                assert!(keys.is_sorted_by(|a, b| a < b));
                assert!((0..200).step_by(2).eq(keys.iter().copied().filter(|key| key % 2 == 0)));
            }
        }
    });
}

/// Returns the one-byte keys of a store in the order of a scan.
fn keys(store: &dyn Engine, direction: Direction) -> Vec<u8> {
    let mut keys = Vec::new();
    let mut cursor = ScanCursor::new(Bound::Unbounded, direction);
    let mut note = |key: &[u8], _: &[u8]| {
        keys.push(key[0]);
        ControlFlow::Continue(())
    };
    while store.ordered().unwrap().scan(&mut cursor, &mut note).unwrap() {}
    keys
}

/// The store is cleared repeatedly while other threads read and write.
///
/// # Panics
/// If a call fails, or a value is one that no thread put.
pub fn clears_harm_no_others(store: &dyn Engine) {
    thread::scope(|scope| {
        for thread in 0..2u8 {
            scope.spawn(move || {
                for round in 0..ROUND_COUNT {
                    store.put(&[thread, (round * 11 % 60) as u8], &[7; 20]).unwrap();
                    store
                        .get(&[1 - thread, (round % 60) as u8], &mut |_, _, value| assert_eq!(value, [7; 20]))
                        .unwrap();
                }
            });
        }
        (0..30).for_each(|_| store.clear().unwrap());
    });
}

/// A reader that reads the keys of a batch one after the other never sees an older batch in a later read.
///
/// # Panics
/// If a batch is seen in part.
pub fn batches_are_one_step(store: &dyn Engine) {
    let keys: Vec<[u8; 2]> = (0..40).map(|i| [b'k', i * 5]).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUND_COUNT / 4 {
                let value = round.to_le_bytes();
                let puts: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: &value }).collect();
                store.write_batch(&puts).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            for round in 0..ROUND_COUNT {
                store.put(&[b'k', (round * 11 % 200) as u8, 1], b"others").unwrap();
            }
        });
        let mut is_last = false;
        while !is_last {
            is_last = done.load(Ordering::Acquire);
            let seen: Vec<_> = keys.iter().map(|key| number(store, key)).collect();
            assert!(seen.is_sorted(), "a batch was seen in part: {seen:?}");
        }
    });
}

/// A batch puts ten thousand keys and another one deletes them; `look` runs after each.
///
/// # Panics
/// If some of the keys are not put or not deleted.
pub fn a_batch_may_be_long(store: &dyn Engine, check: impl Fn()) {
    let keys: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_be_bytes).collect();
    store.put(&keys[7], b"before").unwrap();
    let puts: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: key }).collect();
    store.write_batch(&puts).unwrap();
    assert_eq!(store.len().unwrap(), 10_000);
    check();
    let deletes: Vec<_> = keys.iter().map(|key| BatchOp::Delete { key }).collect();
    store.write_batch(&deletes).unwrap();
    assert_eq!(store.len().unwrap(), 0);
    check();
}

/// Histories of few and of many keys are linearizable: for every key there is an order of the calls that explains every
/// answer.
///
/// # Panics
/// If there is none.
pub fn histories_are_linearizable<S: Made<Medium = Sim>>(scans: bool) {
    histories_on_are_linearizable::<S>(Model::Span, Contention { scans, ..Contention::default() });
}

/// Like [`histories_are_linearizable`], on a disk, with fewer calls. A store whose region has memory for few pages
/// evicts them and reads them again between the calls.
///
/// # Panics
/// If there is no such order.
pub fn histories_on_disk_are_linearizable<S: Made<Medium = SimDisk>>(scans: bool) {
    let call_count = Extent::pick(100, 400);
    histories_on_are_linearizable::<S>(Model::Disk, Contention { scans, call_count, ..Contention::default() });
}

fn histories_on_are_linearizable<S: Made>(model: Model, contention: Contention) {
    for (seed, key_count) in [(1, 3), (2, 12), (3, 40), (4, 1)] {
        let store = Crashed::<S>::format(S::Medium::new(0, model)).expect("there is space");
        let contention = Contention { seed, key_count, ..contention };
        let judged = contend(&store, &contention).unwrap_or_else(|disorder| panic!("{disorder}"));
        assert!(judged > 0);
        assert_eq!(store.check(), Ok(vec![]));
    }
}

/// Pairs of keys that conditions on both keep equal are registers, just as single keys are.
///
/// # Panics
/// If they are not.
pub fn pairs_are_linearizable<E: Engine>(store: impl Fn(u64) -> E) {
    for seed in 0..3 {
        let contention = Contention { seed, clear_every: 100, ..Contention::default() };
        let judged = contend(&Paired(&store(seed)), &contention);
        assert!(judged.unwrap_or_else(|disorder| panic!("{disorder}")) >= 1200);
    }
}
