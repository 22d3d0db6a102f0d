//! Tests for every engine with compaction: a script to crash, its broken variants, and writes that arrive while an item
//! is moved.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::prelude::*;
use engine::{Clock, Progress};
use pmem_sim::{Model, Sim, StepKind};

use crate::crashed::{Crashed, Made};
use crate::explore::{Settings, catches, survives};
use crate::script::{Op, Script};
use crate::visitor::Visitor;

/// Eight values of this size fill a chunk of slots.
const LARGE_BYTES: usize = 30_000;
const KEY_COUNT: u8 = 9;
/// The key that is deleted to leave a gap.
const GAP: u8 = 2;

fn key(number: u8) -> Vec<u8> {
    vec![b'k', number]
}

/// Returns a script with two chunks, one of them nearly empty: its item moves into a gap of the other. Then the freed
/// space is used again, and more items have to be moved.
pub fn evacuating() -> Script {
    let large = |number: u8, fill: u8| Op::Put(key(number), vec![fill; LARGE_BYTES]);
    let setup = (0..KEY_COUNT).map(|number| large(number, 1)).chain([Op::Delete(key(GAP))]);
    let first = [Op::Compact, Op::Put(key(8), b"replaced".to_vec()), large(GAP, 2), large(9, 3), Op::Delete(key(0))];
    let then = [Op::Compact, Op::Reopen, large(0, 4), Op::Delete(key(9))];
    Script::after(70, setup, first.into_iter().chain(then))
}

/// Crashes compactions at every step.
///
/// # Panics
/// At a violation, or if too few images were examined.
pub fn compactions_survive<M: Made<Medium = Sim>>(scripts: &[Script], settings: &Settings) {
    let counts = survives::<Crashed<M>>(scripts, settings);
    assert!(counts.reach(80, 50, 10), "{counts:?}");
}

/// Explores the broken variants of compaction.
///
/// # Panics
/// If one is not caught.
pub fn broken_compactions_are_caught<M: Made<Medium = Sim>>(scripts: &[Script], settings: Settings) {
    let visitors = vec![Visitor::Nobody, Visitor::WriterAlways];
    let settings = Settings { visitors, images_per_op_max: 60, ..settings };
    for canary in [engine::canary::MOVE_FREES_EARLY, heap::canary::PUNCHED_RUN_NOT_BACKED] {
        catches::<Crashed<M>>(canary, scripts, &settings);
    }
}

/// Writes every key while a compaction moves its item: the move undoes no write, but the move of the broken variant
/// does.
///
/// # Panics
/// If that is not so.
pub fn compaction_undoes_no_write<M: Made<Medium = Sim>>() {
    assert_eq!(writes_undone_by_moves::<M>(&Sim::new(0, Model::Line)), 0);
    let variant = Sim::new(0, Model::Line).with_canary(engine::canary::MOVE_UNCHECKED);
    assert_eq!(writes_undone_by_moves::<M>(&variant), 1, "the broken variant does not undo the concurrent write");
}

/// Replaces all values at the moment when the copy of the first moved item is written; returns how many keys hold the
/// old value in the end.
fn writes_undone_by_moves<M: Made<Medium = Sim>>(sim: &Sim) -> usize {
    let store = Arc::new(M::format(sim.clone(), Clock::default()).expect("there is space"));
    let keys = || (0..KEY_COUNT).filter(|number| *number != GAP).map(key);
    (0..KEY_COUNT).for_each(|number| store.put(&key(number), &[1; LARGE_BYTES]).expect("there is space"));
    store.delete(&key(GAP)).expect("it is there");
    // Background writes are done before.
    while store.step().expect("it is sound") == Progress::More {}
    let (late, mut has_come) = (Arc::downgrade(&store), false);
    sim.observe(Box::new(move |_, kind| {
        if kind == StepKind::Stream && !has_come {
            has_come = true;
            let store = late.upgrade().expect("the store is compacted");
            keys().for_each(|key| store.put(&key, b"new").expect("there is space"));
        }
    }));
    store.compact(&mut |_| ControlFlow::Continue(())).expect("it is sound");
    sim.unobserve();
    let is_old = |key: &Vec<u8>| {
        let mut len_bytes = 0;
        store.get(key, &mut |_, _, value| len_bytes = value.len()).expect("it is sound");
        len_bytes == LARGE_BYTES
    };
    keys().filter(is_old).count()
}
