//! The tables' guarantees at every step of a script, also when recovery is crashed repeatedly: an acknowledged
//! operation is present, and an operation in progress is present completely or not at all. Their broken variants must
//! be caught.

use pmem::{Canary, Counted, Medium};
use pmem_sim::{Model, Sim};
use rivals::{LevelHash, PathHash, Pfht, RewoPrinted, Table, canary};
use testkit::{Op, Operations, Script, Settings, Shape, Subject, Visitor, conformance, explore, hunt};

use crate::subject::{Crashed, SLOT_COUNT, padded};

fn key(i: u32) -> Vec<u8> {
    format!("key {i}").into_bytes()
}

/// No visitors, because no more is guaranteed.
fn settings() -> Settings {
    Settings { region_bytes: 4096, visitors: vec![Visitor::Nobody], nested_images_max: 2, ..Settings::default() }
}

fn shape(key_count: u32, op_count: usize) -> Shape {
    let keys = (0..key_count).map(key).collect();
    Shape { keys, value_lens_bytes: vec![0, 1, 8, 14, 15], reopens: true, ..Shape::small(op_count) }
}

/// Returns true if an item moves when the last of these keys is inserted after the others.
fn is_moving<T: Table<Counted<Sim>>>(keys: &[u32]) -> bool {
    let table = T::format(Counted::new(Sim::new(0, Model::Line)), SLOT_COUNT.max(T::SLOT_COUNT_MIN)).unwrap();
    let count = || table.medium().counts().unwrap().fence_count;
    let mut last = 0;
    for i in keys {
        let before = count();
        table.insert(&padded(&key(*i)), b"a value").unwrap();
        last = count() - before;
    }
    last > 2
}

/// Returns a few keys of which the last one causes a move; or some keys if none ever does.
fn moving<T: Table<Counted<Sim>>>() -> Vec<u32> {
    let first = (1..90).map(|last| (0..last).collect::<Vec<u32>>()).find(|keys| is_moving::<T>(keys));
    let Some(mut keys) = first else { return (0..30).collect() };
    for i in 0..keys.len() as u32 - 1 {
        let without: Vec<_> = keys.iter().copied().filter(|own| *own != i).collect();
        if is_moving::<T>(&without) {
            keys = without;
        }
    }
    keys
}

/// Keys are inserted until an item moves, and are then overwritten and removed.
fn crowded<T: Table<Counted<Sim>>>() -> Script {
    let (keys, put) = (moving::<T>(), |i: &u32, tag: u8| Op::Put(key(*i), vec![tag; 15]));
    let (last, before) = keys.split_last().expect("there are some");
    let ops = [put(last, 1)].into_iter().chain(keys[..6].iter().map(|i| put(i, 2)));
    let ops = ops.chain(keys[3..6].iter().map(|i| Op::Delete(key(*i)))).chain([Op::Reopen]);
    Script::after(3, before.iter().map(|i| put(i, 1)), ops)
}

fn scripts<T: Table<Counted<Sim>>>() -> Vec<Script> {
    vec![Script::seeded(1, &shape(6, 16)), crowded::<T>()]
}

fn keeps_its_claims<T: Table<Sim> + Send + Sync + 'static>(scripts: &[Script]) {
    let open = || -> Box<dyn Operations> {
        Box::new(Crashed::<T>::format(Sim::new(4096, Model::Line)).expect("there is space"))
    };
    let compared = conformance(open, &Shape { reopens: false, ..shape(12, 400) }, 0..4);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{}: {mismatch}", T::NAME)) >= 1600);
    let counts = explore::<Crashed<T>>(scripts, &settings());
    let counts = counts.unwrap_or_else(|objection| panic!("{}: {objection}", T::NAME));
    assert!(counts.reach(100, 50, 0), "{}: {counts:?}", T::NAME);
}

fn is_caught<T: Table<Sim> + Send + Sync + 'static>(canary: Canary, scripts: &[Script]) {
    let verdict = hunt::<Crashed<T>>(canary, scripts, &settings());
    assert!(verdict.is_caught(), "{} {canary:?}: {verdict:?}", T::NAME);
}

#[test]
fn pfht_keeps_what_it_claims() {
    let scripts = scripts::<Pfht<Counted<Sim>>>();
    keeps_its_claims::<Pfht<Sim>>(&scripts);
    let moves = [canary::EMPTIED_BEFORE_MOVED, canary::DUPLICATE_LEFT];
    let writes = [canary::TOKEN_BEFORE_ITEM, canary::LOG_NOT_ORDERED, canary::UPDATE_NOT_LOGGED];
    moves.into_iter().chain(writes).for_each(|canary| is_caught::<Pfht<Sim>>(canary, &scripts));
}

#[test]
fn path_hashing_keeps_what_it_claims() {
    let scripts = scripts::<PathHash<Counted<Sim>>>();
    keeps_its_claims::<PathHash<Sim>>(&scripts);
    let writes = [canary::TOKEN_BEFORE_ITEM, canary::LOG_NOT_ORDERED, canary::UPDATE_NOT_LOGGED];
    writes.into_iter().for_each(|canary| is_caught::<PathHash<Sim>>(canary, &scripts));
}

#[test]
fn level_hashing_keeps_what_it_claims() {
    let scripts = scripts::<LevelHash<Counted<Sim>>>();
    keeps_its_claims::<LevelHash<Sim>>(&scripts);
    let moves = [canary::EMPTIED_BEFORE_MOVED, canary::DUPLICATE_LEFT];
    moves
        .into_iter()
        .chain([canary::TOKEN_BEFORE_ITEM])
        .for_each(|canary| is_caught::<LevelHash<Sim>>(canary, &scripts));
}

#[test]
fn rewo_as_printed_keeps_what_it_claims() {
    let scripts = scripts::<RewoPrinted<Counted<Sim>>>();
    keeps_its_claims::<RewoPrinted<Sim>>(&scripts);
    keeps_its_claims::<RewoPrinted<Sim, false>>(&scripts);
    let moves = [canary::EMPTIED_BEFORE_MOVED, canary::DUPLICATE_LEFT];
    moves
        .into_iter()
        .chain([canary::TOKEN_BEFORE_ITEM])
        .for_each(|canary| is_caught::<RewoPrinted<Sim>>(canary, &scripts));
}
