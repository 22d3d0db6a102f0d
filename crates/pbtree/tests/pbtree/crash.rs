//! The tree crashed at every step: nothing acknowledged is lost, and every broken variant is caught.

use pmem::Canary;
use pmem_sim::Model;
use testkit::{Counts, End, Op, Script, Settings, Shape, Subject, Verdict, Visitor, hunt, survives};

use crate::subject::Crashed;

fn settings() -> Settings {
    Settings {
        region_bytes: 1 << 20,
        visitors: vec![Visitor::Nobody],
        images_per_op_max: 60,
        nested_images_max: 2,
        ..Settings::default()
    }
}

/// For broken variants: more images of fewer scripts, and no images of recoveries.
fn closely() -> Settings {
    Settings { images_per_op_max: 300, nested_images_max: 1, ..settings() }
}

fn put(key: u32, len: usize) -> Op {
    Op::Put(name(key), vec![key as u8 ^ len as u8; len])
}

fn name(key: u32) -> Vec<u8> {
    format!("key {key:03}").into()
}

/// Updates of equal and different lengths, deletes, a key that comes back, inserts before, between and behind others.
fn everyday() -> Script {
    let delete = |key| Op::Delete(name(key));
    let first = [put(5, 40), put(3, 40), put(5, 40), put(7, 8), put(5, 41), delete(3)];
    Script::fresh(1, first.into_iter().chain([put(4, 8), put(3, 70), delete(9), put(3, 70)]))
}

/// One insert into a full leaf.
fn one_split(seed: u64, count: u32, behind: u32) -> Script {
    let filled = (0..count).map(|i| put(i * 10, 8)).chain((1..5).map(|i| put(behind + i, 8)));
    Script::after(seed, filled, [put(behind + 5, 8)])
}

/// Splits of the root, of leaves, and of inner nodes; and of a parent's last child, behind which the parent has no
/// pair.
fn splits() -> Vec<Script> {
    let setup = |count: u32| (0..count).map(|i| put(i * 10, 8));
    let explored = |from: u32, count: u32| (from..from + count).map(|i| put(i, 8));
    vec![
        Script::after(2, setup(7), explored(31, 3)),
        Script::after(3, setup(30), explored(101, 6)),
        Script::after(4, setup(35), (0..8).map(|i| put(i * 37 % 350 + 1, 8))),
        Script::after(11, setup(10), [put(101, 8)]),
    ]
}

/// Packs a leaf, and frees its keys' chunks.
fn packs() -> Script {
    let setup = (0..14).map(|i| put(i * 10, 8)).chain([0, 10, 20].map(|key| Op::Delete(name(key))));
    let inserts = [1, 2, 3, 4, 5, 6].map(|key| put(key, 8));
    Script::after(5, setup, inserts.into_iter().chain([Op::Settle]))
}

/// Deletes that leave sparse and empty leaves; merges of these, of inner nodes and of the root; then keys that come
/// back.
fn merges() -> Vec<Script> {
    let filled = |count: u32| (0..count).map(|i| put(i * 10, 8));
    let deleted = |keys: std::ops::Range<u32>| keys.map(|key| Op::Delete(name(key * 10)));
    vec![
        Script::after(8, filled(12).chain(deleted(2..5)), deleted(5..9).chain([Op::Settle, put(35, 8), put(60, 40)])),
        Script::after(9, filled(45).chain(deleted(4..40)), [Op::Settle, put(101, 8), Op::Reopen, put(250, 8)]),
        Script::after(10, filled(45).chain(deleted(0..44)), deleted(44..45).chain([Op::Settle, put(3, 8)])),
    ]
}

fn clears() -> Script {
    let setup = (0..20).map(|i| put(i, 8));
    Script::after(6, setup, [Op::Clear, put(1, 8), Op::Reopen, put(2, 8), Op::Clear])
}

fn swaps() -> Script {
    let cas = |expected: Option<usize>, new: Option<usize>| Op::Cas {
        key: name(1),
        expected: expected.map(|len| vec![1 ^ len as u8; len]),
        new: new.map(|len| vec![1 ^ len as u8; len]),
    };
    let there = [cas(None, Some(9)), cas(None, Some(8)), cas(Some(9), Some(8))];
    Script::fresh(7, there.into_iter().chain([cas(Some(8), None), cas(Some(8), None)]))
}

fn all() -> Vec<Script> {
    let shape = Shape { swaps: true, scans: true, reopens: true, ..Shape::small(12) };
    let full = Shape { fills: true, clears: true, ..Shape::small(15) };
    let drawn = (10..12).map(|seed| Script::seeded(seed, &shape)).chain([Script::seeded(20, &full)]);
    [everyday(), packs(), clears(), swaps()].into_iter().chain(splits()).chain(merges()).chain(drawn).collect()
}

fn passes<S: Subject>(scripts: &[Script], settings: &Settings) -> Counts {
    survives::<S>(scripts, settings)
}

#[test]
fn every_crash_is_recovered() {
    let counts = passes::<Crashed>(&all(), &settings());
    assert!(counts.reach(500, 300, 0), "{counts:?}");
}

/// Readers between two steps, and a second writer.
#[test]
fn met_writes_survive() {
    let visitors = vec![Visitor::ReaderAlways, Visitor::ReaderAfter(7), Visitor::WriterAlways];
    let visited = Settings { visitors, images_per_op_max: 20, ..settings() };
    let scripts = [vec![everyday(), packs(), clears()], merges()].concat();
    let counts = passes::<Crashed>(&scripts, &visited);
    assert!(counts.reach(200, 0, 100), "{counts:?}");
    passes::<Crashed<true>>(&[everyday()], &visited);
}

#[test]
fn in_place_writes_survive_every_crash() {
    passes::<Crashed<true>>(&[everyday(), swaps()], &settings());
}

#[test]
fn killed_process_leftovers_become_durable() {
    let killed = Settings { end: End::Kill, models: vec![Model::Line], ..settings() };
    passes::<Crashed>(&[vec![everyday(), packs(), clears()], splits(), merges()].concat(), &killed);
    passes::<Crashed<true>>(&[everyday()], &killed);
}

fn caught<S: Subject>(canary: Canary, scripts: &[Script], settings: &Settings) {
    let settings = Settings { models: vec![Model::Line], ..settings.clone() };
    match hunt::<S>(canary, scripts, &settings) {
        Verdict::Caught(_) => {}
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught: {counts:?}"),
    }
}

#[test]
fn broken_writes_are_caught() {
    for canary in [
        pbtree::canary::ITEM_NOT_ORDERED,
        pbtree::canary::DELETE_NOT_FLUSHED,
        pbtree::canary::COUNT_BEFORE_PAIR,
        undo_log::canary::LOG_NOT_ORDERED,
    ] {
        caught::<Crashed>(canary, &[everyday()], &settings());
    }
    caught::<Crashed>(undo_log::canary::UNDO_HIDDEN_FROM_READERS, &[everyday()], &settings());
    caught::<Crashed<true>>(pbtree::canary::IN_PLACE_NOT_LOGGED, &[everyday()], &settings());
    caught::<Crashed<true>>(pbtree::canary::ITEM_NOT_FLUSHED, &[everyday()], &settings());
}

#[test]
fn broken_splits_are_caught() {
    for canary in [
        pbtree::canary::NODE_NOT_FLUSHED,
        pbtree::canary::PARENT_OUTSIDE_RUN,
        pbtree::canary::ROOT_BEFORE_NODE,
        undo_log::canary::NUMBER_BEFORE_CHANGE,
    ] {
        caught::<Crashed>(canary, &[one_split(30, 3, 20), one_split(31, 30, 100)], &closely());
    }
    caught::<Crashed>(pbtree::canary::ROOT_BEFORE_NODE, &[clears()], &closely());
}

#[test]
fn broken_merges_are_caught() {
    for canary in [
        pbtree::canary::MERGE_HALF_LOGGED,
        pbtree::canary::NODE_NOT_FLUSHED,
        undo_log::canary::LOG_NOT_ORDERED,
        undo_log::canary::NUMBER_BEFORE_CHANGE,
    ] {
        caught::<Crashed>(canary, &merges(), &closely());
    }
}

/// Checks of nodes that were split or merged.
#[test]
fn stale_separator_knowledge_is_caught() {
    for scripts in [splits(), merges()] {
        caught::<Crashed>(pbtree::canary::HEADS_KEPT, &scripts, &settings());
    }
}

#[test]
fn unlock_before_commit_is_caught() {
    let read = Settings { visitors: vec![Visitor::ReaderAlways], ..settings() };
    caught::<Crashed>(pbtree::canary::UNLOCKED_BEFORE_COMMIT, &[everyday()], &read);
}

#[test]
fn key_freed_under_separator_is_caught() {
    caught::<Crashed>(pbtree::canary::KEY_UNDER_SEPARATOR, &[packs()], &settings());
}

#[test]
fn killed_process_word_is_caught() {
    let killed = Settings { end: End::Kill, ..settings() };
    caught::<Crashed>(undo_log::canary::WORD_LEFT_AS_FOUND, &[everyday()], &killed);
}
