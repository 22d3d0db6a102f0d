//! Items that are moved or split before they are durable: a thread that finds such an item in the new place makes the
//! item durable before a caller gets it. Also stores that a killed process left.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use engine::prelude::*;
use engine::{BatchOp, Cursor};
use engine_rewo_hash::RewoHash;
use index::block_hash::canary;
use parking_lot::Mutex;
use pmem::{Canary, Medium};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{Crashed, End, Settings, Visitor, survives};

use crate::crash::refills;
use crate::hooked::{Access, Hooked, hook, unhook};
use crate::moves::{moving, wrong};
use crate::splits::{first, key};
use crate::subject::{OfRewoHash, PARAMETERS, buckets};

type Store = RewoHash<Hooked, HostDram>;

/// Puts the key in a store of `last` keys. Before the put waits for its log, another put moves an item or splits;
/// before that one waits, the key is read. Returns true if the key has the new value after any power loss.
fn is_durable_when_read(last: u32, put: &[u8], broken: Option<Canary>) -> bool {
    let sim = Sim::new(0, Model::Span);
    let sim = if let Some(broken) = broken { sim.with_canary(broken) } else { sim };
    let store = Rc::new(RewoHash::format(Hooked::on(sim.clone()), HostDram, &PARAMETERS).unwrap());
    (0..last).for_each(|i| store.put(&key(i), b"a value").unwrap());
    // So that the next slot is the first one again, which moves try first.
    store.put(put, b"between").unwrap();
    let is_durable = Rc::new(Cell::new(None));
    let (depth, theirs, noted, read) = (Cell::new(0), Rc::clone(&store), Rc::clone(&is_durable), put.to_vec());
    hook(move |access| {
        if access != Access::Wait || depth.get() > 1 {
            return;
        }
        depth.set(depth.get() + 1);
        if depth.get() == 1 {
            return theirs.put(&key(last), b"a value").unwrap();
        }
        let is_seen = is_new(&theirs, &read);
        let images = sim.images(20, 1);
        let opened = images.iter().map(|image| RewoHash::open(Sim::from_image(image, Model::Span), HostDram).unwrap());
        noted.set(Some(is_seen && opened.into_iter().all(|store| is_new(&store, &read))));
    });
    store.put(put, b"another").unwrap();
    unhook();
    is_durable.get().expect("the other put waited")
}

fn is_new<M: Medium>(store: &RewoHash<M, HostDram>, key: &[u8]) -> bool {
    let mut is_new = false;
    store.get(key, &mut |_, _, value| is_new = value == b"another").unwrap() && is_new
}

/// Returns the key that the first move moves, and the keys of its bucket.
fn moved() -> (Vec<u8>, Vec<Vec<u8>>) {
    let last = first("move_count");
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    (0..last).for_each(|i| store.put(&key(i), b"a value").unwrap());
    let before = buckets(&store);
    store.put(&key(last), b"a value").unwrap();
    let after = buckets(&store);
    let (moved, bucket) = before.iter().find(|at| !after.contains(at)).expect("an item moved");
    (moved.clone(), before.iter().filter(|(_, at)| at == bucket).map(|(key, _)| key.clone()).collect())
}

#[test]
fn moved_item_is_settled_in_new_place() {
    let (last, (_, beside)) = (first("move_count"), moved());
    assert!(beside.iter().all(|key| is_durable_when_read(last, key, None)));
    assert!(!beside.iter().all(|key| is_durable_when_read(last, key, Some(canary::LOCK_BIT_LOST_BY_MOVE))));
}

#[test]
fn split_item_is_settled_in_new_place() {
    let last = first("split_count");
    assert!((0..4).all(|i| is_durable_when_read(last, &key(i), None)));
    assert!((0..4).all(|i| !is_durable_when_read(last, &key(i), Some(canary::LOCK_BITS_LOST_BY_SPLIT))));
}

/// While `write`, which changes the key's value, waits for the log, `look` checks whether the new value is visible.
/// Returns its result, and true if the new value survives any power loss at that time.
fn met(write: impl FnOnce(&Store), look: impl Fn(&Store) -> bool + 'static) -> Option<(bool, bool)> {
    let sim = Sim::new(0, Model::Span);
    let store = Rc::new(RewoHash::format(Hooked::on(sim.clone()), HostDram, &PARAMETERS).unwrap());
    store.put(b"key", b"old").unwrap();
    let (theirs, outcome, is_inside) = (Rc::clone(&store), Rc::new(Cell::new(None)), Cell::new(false));
    let noted = Rc::clone(&outcome);
    hook(move |access| {
        if access != Access::Wait || is_inside.replace(true) {
            return;
        }
        let (is_seen, images) = (look(&theirs), sim.images(20, 1));
        let open = |image| RewoHash::open(Sim::from_image(image, Model::Span), HostDram).unwrap();
        noted.set(Some((is_seen, images.iter().map(open).all(|store| is_new(&store, b"key")))));
    });
    write(&store);
    unhook();
    outcome.get()
}

#[test]
fn walked_items_are_durable() {
    let walk = |store: &Store| {
        let mut is_shown = false;
        let next = store.walk(Cursor::Start, &mut |_, value, _| is_shown = value == b"another").unwrap();
        is_shown && next == Cursor::End
    };
    assert_eq!(met(|store| store.put(b"key", b"another").unwrap(), walk), Some((true, true)));
}

#[test]
fn executed_batch_is_settled_by_readers() {
    let write = |store: &Store| store.write_batch(&[BatchOp::Put { key: b"key", value: b"another" }]).unwrap();
    assert_eq!(met(write, |store| is_new(store, b"key")), Some((true, true)));
}

fn kills() -> Settings {
    Settings {
        end: End::Kill,
        models: vec![Model::Line],
        visitors: vec![Visitor::Nobody],
        images_per_step_max: 8,
        images_per_op_max: 200,
        nested_images_max: 24,
        ..Settings::default()
    }
}

#[test]
fn killed_process_store_is_recovered() {
    let scripts = [refills(), moving()];
    let counts = survives::<Crashed<OfRewoHash>>(&scripts, &kills());
    assert!(counts.reach(60, 60, 0), "{counts:?}");
}

/// Kills the process during a move, writes the moved key in the next process, and loses power. Returns the damage.
fn wrong_after_kills(broken: Option<Canary>) -> Vec<String> {
    let (last, (moved, _)) = (first("move_count"), moved());
    let sim = Sim::new(0, Model::Line);
    let store = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    (0..last).for_each(|i| store.put(&key(i), b"a value").unwrap());
    let killed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&killed);
    sim.observe(Box::new(move |sim: &Sim, _| noted.lock().extend(sim.killed())));
    store.put(&key(last), b"a value").unwrap();
    sim.unobserve();
    let mut all = Vec::new();
    for image in killed.lock().iter() {
        let sim = Sim::from_image(image, Model::Line);
        let sim = if let Some(broken) = broken { sim.with_canary(broken) } else { sim };
        RewoHash::open(sim.clone(), HostDram).unwrap().put(&moved, b"another").unwrap();
        for image in sim.images(8, 1) {
            all.extend(wrong(&RewoHash::open(Sim::from_image(&image, Model::Line), HostDram).unwrap()));
        }
    }
    all
}

#[test]
fn killed_process_segment_is_durable_before_writes() {
    assert_eq!(wrong_after_kills(None), Vec::<String>::new());
    assert!(!wrong_after_kills(Some(canary::SEGMENT_LEFT_AS_FOUND)).is_empty(), "the broken variant was not caught");
}
