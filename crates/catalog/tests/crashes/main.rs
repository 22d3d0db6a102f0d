//! The catalog crashed at every step, on every engine: each change is done or not, no key of a dead tree stays, and
//! broken variants are caught.

mod databases;
mod engines;
mod subject;

use databases::{Databases, Two};
use engines::{Of, OfHiKv, OfInk, OfPmekv, OfRewoHash, REGION_BYTES};
use subject::{BeginsInTwo, ClearsOneByOne, ForgetsFirst, Nameless, OneTree, Sound, UsesIdEarly, Way};
use testkit::{Made, Objection, OnDisk, Op, Script, Settings, Subject, Visitor, explore, survives};

fn settings() -> Settings {
    Settings {
        region_bytes: REGION_BYTES,
        visitors: vec![Visitor::Nobody],
        images_per_step_max: 6,
        images_per_op_max: 60,
        nested_images_max: 2,
        ..Settings::default()
    }
}

fn key(number: u8) -> Vec<u8> {
    format!("key {number:02}").into_bytes()
}

/// Puts, then each way of clearing, with keys in between.
fn changes() -> Script {
    let put = |number| Op::Put(key(number), vec![number; 9]);
    let explored = [
        Op::Clear,
        put(1),
        Op::Compact,
        Op::Clear,
        put(2),
        put(3),
        Op::Reopen,
        Op::Clear,
        put(4),
        Op::Delete(key(4)),
        Op::Compact,
    ];
    Script::after(1, (0..5).map(put), explored)
}

/// Keys that look like those of trees and of the catalog, before it begins and after.
fn beginning() -> Script {
    let marked: [&[u8]; 6] =
        [&[0xFF, 0], &[0xFF, 0, 0xFF, 5], &[0xFF, 5], &[0xFF, 0x10, 0], &[0xFF, 0x11, 0, 16, 7], b"k"];
    let puts = marked.map(|key| Op::Put(key.to_vec(), key.to_vec()));
    let explored = [
        Op::Compact,
        Op::Put(vec![0xFF, 0x10, 0], b"after".to_vec()),
        Op::Delete(vec![0xFF, 5]),
        Op::Reopen,
        Op::Put(vec![0xFF, 0, 0xFF, 5], b"again".to_vec()),
        Op::Compact,
    ];
    Script::after(2, puts, explored)
}

/// Both databases are emptied, and swapped; one is emptied by a transaction that puts keys.
fn databases() -> Script {
    let put = |key: &str| Op::Put(key.into(), key.into());
    let put_in_batch = |key: &str| (key.into(), Some(key.into()));
    let explored = [
        Op::Batch(vec![(b"a1".to_vec(), None), put_in_batch("a2"), put_in_batch("b3")]),
        Op::Compact,
        put("a4"),
        Op::Clear,
        put("b5"),
        Op::Reopen,
        put("a6"),
        Op::Batch(vec![(b"a6".to_vec(), None), (b"b5".to_vec(), None), put_in_batch("a7")]),
        Op::Compact,
    ];
    Script::after(3, ["a1", "a2", "b1"].map(put), explored)
}

fn changes_survive<K: Made>() {
    let counts = survives::<OneTree<K>>(&[changes()], &settings());
    assert!(counts.reach(100, 30, 0), "{counts:?}");
    let counts = survives::<Nameless<K>>(&[beginning()], &settings());
    assert!(counts.reach(20, 10, 0), "{counts:?}");
    let counts = survives::<Databases<K>>(&[databases()], &settings());
    assert!(counts.reach(50, 20, 0), "{counts:?}");
}

/// Asserts that an exploration objects to a broken way, and not for want of images.
fn is_caught<S: Subject>(script: Script) {
    match explore::<S>(&[script], &settings()) {
        Err(Objection::Violation(_)) => {}
        other => panic!("{} is not caught: {other:?}", std::any::type_name::<S>()),
    }
}

fn broken_ways_are_caught<K: Made>() {
    fn changes_by<K: Made, W: Way>() {
        is_caught::<OneTree<K, W>>(changes());
    }
    changes_by::<K, UsesIdEarly>();
    changes_by::<K, ForgetsFirst>();
    changes_by::<K, ClearsOneByOne>();
    is_caught::<Nameless<K, BeginsInTwo>>(beginning());
    is_caught::<Databases<K, Two>>(databases());
}

#[test]
fn changes_survive_on_hikv() {
    changes_survive::<Of<OfHiKv>>();
}

#[test]
fn changes_survive_on_rewo_hash() {
    changes_survive::<Of<OfRewoHash>>();
}

#[test]
fn changes_survive_on_ink() {
    changes_survive::<Of<OfInk>>();
}

#[test]
fn changes_survive_on_pmekv() {
    changes_survive::<Of<OfPmekv>>();
}

#[test]
fn changes_survive_on_a_journal() {
    let disk =
        || Settings { visitors: vec![Visitor::Nobody], images_per_op_max: 20, ..Settings::on_disk(REGION_BYTES) };
    survives::<OneTree<Of<OfHiKv, OnDisk>, Sound>>(&[changes()], &disk());
    survives::<OneTree<Of<OfInk, OnDisk>, Sound>>(&[changes()], &disk());
    survives::<Databases<Of<OfHiKv, OnDisk>>>(&[databases()], &disk());
}

#[test]
fn broken_ways_are_caught_on_hikv() {
    broken_ways_are_caught::<Of<OfHiKv>>();
}

#[test]
fn broken_ways_are_caught_on_ink() {
    broken_ways_are_caught::<Of<OfInk>>();
}
