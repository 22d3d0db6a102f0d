//! Sparse nodes are merged in the background, alongside other threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::prelude::*;
use engine::{Progress, WantedThreads};
use engine_ink::{Ink, Options};
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{Contention, Made, Paired, contend, restless};

use crate::subject::{OfInk, PARAMETERS};

const KEY_COUNT: u32 = 2000;

fn filled(sim: &Sim) -> Ink<Sim, HostDram> {
    let store = Ink::format(sim.clone(), HostDram, &PARAMETERS, Options { order: 15, in_place: false }).unwrap();
    (0..KEY_COUNT).for_each(|i| store.put(&i.to_be_bytes(), b"value").unwrap());
    settle(&store);
    store
}

fn settle(store: &dyn Engine) {
    while store.step().unwrap() == Progress::More {}
}

fn delete(store: &dyn Engine, keys: impl Iterator<Item = u32>) {
    keys.for_each(|i| assert!(store.delete(&i.to_be_bytes()).unwrap()));
}

fn node_count(store: &Ink<Sim, HostDram>) -> u64 {
    store.tree().figures().unwrap().node_count
}

#[test]
fn deletes_ask_for_a_step_that_merges() {
    let sim = Sim::new(0, Model::Span);
    let store = filled(&sim);
    let (full, merged) = (node_count(&store), store.stats().figure("ink_merged"));
    assert_eq!(store.wanted_threads(), WantedThreads::None, "nothing was deleted");
    delete(&store, (0..KEY_COUNT).filter(|i| i % 10 > 0));
    assert_eq!(store.wanted_threads(), WantedThreads::One);
    settle(&store);
    assert!(node_count(&store) < full / 5, "of {full} nodes {} are left", node_count(&store));
    assert!(store.stats().figure("ink_merged") > merged);
    assert_eq!((store.wanted_threads(), store.len().unwrap()), (WantedThreads::None, u64::from(KEY_COUNT) / 10));
    // Of two hundred keys, a few deletes are enough.
    delete(&store, (0..KEY_COUNT).step_by(10).take(20));
    assert_eq!(store.wanted_threads(), WantedThreads::None);
    delete(&store, (0..KEY_COUNT).step_by(10).skip(20).take(10));
    assert_eq!(store.wanted_threads(), WantedThreads::One);
}

#[test]
fn batch_and_earlier_deletes_trigger_merges() {
    let sim = Sim::new(0, Model::Span);
    let store = filled(&sim);
    let full = node_count(&store);
    let keys: Vec<_> = (0..KEY_COUNT).map(u32::to_be_bytes).collect();
    let ops: Vec<_> = keys[100..].iter().map(|key| engine::BatchOp::Delete { key }).collect();
    store.write_batch(&ops).unwrap();
    assert_eq!(store.wanted_threads(), WantedThreads::One);
    drop(store);
    let store = Ink::open(sim, HostDram, Options::default()).unwrap();
    settle(&store);
    assert!(node_count(&store) < full / 10);
    assert_eq!(store.len().unwrap(), 100);
}

/// A thread that does the background's work while other threads use the store.
fn beside_merges(store: &dyn Engine, work: impl FnOnce()) {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                store.step().unwrap();
            }
        });
        work();
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn histories_during_merges_are_linearizable() {
    for seed in 0..3 {
        let parameters = Parameters { partition_count: 3, ..PARAMETERS };
        let options = Options { order: 7, in_place: seed % 2 == 0 };
        let store = Ink::format(restless(), HostDram, &parameters, options).unwrap();
        let contention = Contention { seed, key_count: 24, call_count: 300, clear_every: 100, ..Contention::default() };
        beside_merges(&store, || {
            let judged = contend(&Paired(&store), &contention);
            assert!(judged.is_ok_and(|count| count > 0), "seed {seed}");
        });
    }
}

#[test]
fn unmerged_keys_survive_merges() {
    let store = OfInk::<false, Sim>::format(Sim::new(0, Model::Span), engine::Clock::default()).unwrap();
    let key = |own: u32, i: u32| [own.to_be_bytes(), i.to_be_bytes()].concat();
    let write = |own: u32| {
        for round in 0..4u32 {
            (0..300).for_each(|i| store.put(&key(own, i), &round.to_le_bytes()).unwrap());
            for i in (0..300).filter(|i| i % 5 != round) {
                assert!(store.delete(&key(own, i)).unwrap());
            }
            for i in 0..300 {
                let found = store.get(&key(own, i), &mut |_, _, value| assert_eq!(value, round.to_le_bytes())).unwrap();
                assert_eq!(found, i % 5 == round, "{own} {i}");
            }
        }
    };
    beside_merges(&store, || {
        thread::scope(|scope| {
            scope.spawn(|| write(1));
            write(2);
        });
    });
    settle(&store);
    assert!(store.stats().figure("ink_merged") > Some(0.0));
    let figures = store.tree().check(&mut |damage| panic!("{damage:?}")).unwrap();
    assert_eq!(figures.used_bytes, store.stats().live_bytes);
}
