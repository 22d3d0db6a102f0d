//! Threads that write, read, scan and clear at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::{BatchOp, Check, Decision, Depth, Engine, ScanCursor};
use engine_pmekv::{Options, Pmekv};
use heap::Parameters;
use pmem::Medium;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use std::ops::{Bound, ControlFlow};

use testkit::{Contention, Crashed, Operations, Paired, Restless, Subject, contend, restless};

use crate::subject::{OfPmekv, PARAMETERS};

const THREAD_COUNT: u64 = 4;
const ROUND_COUNT: u64 = 400;

/// Segments and a log so short that checkpoints are made all the time.
const SHORT: Options = Options { log_entry_count_max: 200, segment_entry_count: 50 };

fn store() -> Pmekv<Restless, HostDram> {
    let parameters = Parameters { partition_count: 3, ..PARAMETERS };
    Pmekv::format(restless(), HostDram, &parameters, SHORT).unwrap()
}

fn number<M: Medium>(store: &Pmekv<M, HostDram>, key: &[u8]) -> Option<u64> {
    let mut number = None;
    store.get(key, &mut |_, value| number = value.first_chunk().map(|&word| u64::from_le_bytes(word))).unwrap();
    number
}

fn add_one<M: Medium>(store: &Pmekv<M, HostDram>, key: &[u8]) {
    let mut add = |held: Option<engine::Held<'_>>| {
        let before = held.map_or(0, |held| u64::from_le_bytes(*held.value.first_chunk().unwrap()));
        Decision::Put((before + 1).to_le_bytes().to_vec().into())
    };
    assert!(store.update(key, &mut add).unwrap());
}

/// Every thread counts the same keys up, while its own keys come and go: no count is lost.
#[test]
fn no_update_is_lost_among_checkpoints() {
    {
        let store = store();
        thread::scope(|scope| {
            for thread in 0..THREAD_COUNT {
                let store = &store;
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
        let total: u64 = (0..5).map(|i| number(&store, &[b'c', i * 50]).unwrap()).sum();
        assert_eq!(total, THREAD_COUNT * ROUND_COUNT);
        is_sound(&store);
    }
}

/// Scans show keys in order, each once, and every key that is there from first to last.
#[test]
fn scans_are_in_order_while_others_write() {
    let store = store();
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
            for direction in [engine::Direction::Forward, engine::Direction::Backward] {
                let mut keys = Vec::new();
                let mut cursor = ScanCursor::new(Bound::Unbounded, direction);
                let mut note = |key: &[u8], _: &[u8]| {
                    keys.push(key[0]);
                    ControlFlow::Continue(())
                };
                while store.ordered().unwrap().scan(&mut cursor, &mut note).unwrap() {}
                if direction == engine::Direction::Backward {
                    keys.reverse();
                }
                assert!(keys.is_sorted_by(|a, b| a < b));
                assert!((0..200).step_by(2).eq(keys.iter().copied().filter(|key| key % 2 == 0)));
            }
        }
    });
    is_sound(&store);
}

/// A store that is cleared again and again, while others read and write, ends with what was written after.
#[test]
fn clears_among_readers_and_writers_leave_a_sound_tree() {
    let store = store();
    thread::scope(|scope| {
        for thread in 0..2u8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..ROUND_COUNT {
                    store.put(&[thread, (round * 11 % 60) as u8], &[7; 20]).unwrap();
                    store.get(&[1 - thread, (round % 60) as u8], &mut |_, value| assert_eq!(value, [7; 20])).unwrap();
                }
            });
        }
        (0..30).for_each(|_| store.clear().unwrap());
    });
    is_sound(&store);
    store.clear().unwrap();
    assert_eq!(store.len().unwrap(), 0);
}

fn is_sound(store: &Pmekv<Restless, HostDram>) {
    let mut check = Check::new(Depth::Deep);
    store.check(&mut check, &mut |damage| panic!("{damage:?}")).unwrap();
    assert_eq!(store.ordered().unwrap().check_order(&mut |damage| panic!("{damage:?}")).unwrap(), store.len().unwrap());
    while store.stats().garbage_count > 0 {
        store.tidy();
    }
    assert_eq!(store.needed_bytes().unwrap(), store.stats().live_bytes);
}

/// Readers of one key after another see a batch that is done before the later read.
#[test]
fn batches_are_one_step_for_readers() {
    let store = store();
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
            let seen: Vec<_> = keys.iter().map(|key| number(&store, key)).collect();
            assert!(seen.is_sorted(), "a batch was seen in part: {seen:?}");
        }
    });
    is_sound(&store);
}

/// One that has more entries than the log's bound, which is kept before the batch and after it.
#[test]
fn a_batch_may_be_longer_than_the_log() {
    let store = store();
    let keys: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_be_bytes).collect();
    store.put(&keys[7], b"before").unwrap();
    let puts: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: key }).collect();
    store.write_batch(&puts).unwrap();
    assert_eq!(store.len().unwrap(), 10_000);
    is_sound(&store);
    let deletes: Vec<_> = keys.iter().map(|key| BatchOp::Delete { key }).collect();
    store.write_batch(&deletes).unwrap();
    assert_eq!(store.len().unwrap(), 0);
    is_sound(&store);
}

/// Pairs of keys that conditions over both keep equal are registers, as single keys are.
#[test]
fn histories_over_two_keys_are_linearizable() {
    for seed in 0..3 {
        let contention = Contention {
            thread_count: 3,
            call_count: 400,
            key_count: 3,
            swaps: true,
            scans: false,
            clear_every: 100,
            seed,
        };
        let judged = contend(&Paired(&store()), &contention);
        assert!(judged.unwrap_or_else(|disorder| panic!("{disorder}")) >= 1200);
    }
}

/// Histories of few keys, of which every key's is judged: is there an order of the calls that explains every answer?
#[test]
fn histories_under_contention_are_linearizable() {
    for (seed, key_count) in [(1, 3), (2, 12), (3, 40)] {
        let contention = Contention {
            thread_count: 3,
            call_count: 400,
            key_count,
            seed,
            swaps: true,
            scans: true,
            clear_every: 150,
        };
        let store = Crashed::<OfPmekv<Restless>>::format(Sim::new(0, Model::Span)).expect("there is room");
        let judged = contend(&store, &contention).unwrap_or_else(|disorder| panic!("{disorder}"));
        assert!(judged > 0);
        assert_eq!(store.check(), Ok(vec![]));
    }
}
