//! Scripts, crashed at every step, and again during recovery.

use engine_pmekv::canary;
use pmem_sim::{Model, Sim};
use testkit::{
    Crashed, End, Op, Script, Settings, Shape, Visitor, answers_like_a_map, broken_compactions_are_caught, catches,
    compaction_undoes_no_write, compactions_survive, evacuating, rules_hold, survives,
};

use crate::subject::{OfPmekv, put, shape};

pub(crate) fn settings() -> Settings {
    Settings { images_per_op_max: 12, nested_images_max: 2, ..Settings::of_engine() }
}

/// Keys that are added and deleted in the same slots, over segments, checkpoints and openings.
pub(crate) fn churn() -> Script {
    let first = (0..10).map(|i| put(["a", "b", "c"][i % 3], i as u8));
    let then = [Op::Delete("a".into()), put("d", 20), Op::Reopen, put("a", 21), put("b", 22), Op::Delete("d".into())];
    let last = (0..6).map(|i| put(["c", "d"][i % 2], 30 + i as u8));
    Script::fresh(1, first.chain(then).chain(last).chain([Op::Reopen]))
}

/// Batches in both lanes, one longer than a segment, with checkpoints and openings between them.
pub(crate) fn batches() -> Script {
    let key = |i: u8| format!("key {i:02}").into_bytes();
    let batch = |keys: [u8; 3], value: u8| Op::Batch(keys.map(|i| (key(i), Some(vec![value; 20]))).into());
    let mixed =
        Op::Batch(vec![(key(0), None), (key(9), None), (key(1), Some(vec![9; 30])), (key(4), Some(vec![9; 5]))]);
    let long = Op::Batch((0..9).map(|i| (key(i), Some(vec![i; 9]))).collect());
    let first = [batch([0, 1, 2], 1), put("a", 2), batch([1, 2, 3], 3), Op::Reopen, batch([0, 2, 4], 4), put("a", 5)];
    let then = [mixed, long, Op::Reopen, batch([5, 6, 7], 6), put("b", 7), Op::Clear, batch([0, 1, 2], 8)];
    Script::fresh(3, first.into_iter().chain(then))
}

/// Group puts in both lanes, longer than segments and than a group, one with a repeated key.
pub(crate) fn groups() -> Script {
    let several = |keys: std::ops::Range<u8>, value: u8| {
        Op::MultiPut(keys.map(|i| (vec![b'k', i % 5], vec![value + i; 12])).collect())
    };
    let first = [several(0..4, 1), put("a", 2), several(1..5, 20), several(0..7, 40), Op::Delete(vec![b'k', 1])];
    let then = [Op::Reopen, several(0..3, 60), put("a", 3), several(2..4, 80), Op::Reopen];
    Script::fresh(6, first.into_iter().chain(then))
}

/// Group deletes in both lanes, longer than segments, of keys that are present, absent and repeated.
pub(crate) fn groups_of_deletes() -> Script {
    let key = |i: u8| vec![b'k', i];
    let puts = |keys: std::ops::Range<u8>, value: u8| keys.map(move |i| Op::Put(key(i), vec![value + i; 12]));
    let without = |keys: &[u8]| Op::MultiDelete(keys.iter().copied().map(key).collect());
    let first = [without(&[0, 1, 2, 3]), without(&[3, 9])].into_iter().chain(puts(0..4, 20));
    let then = [without(&[5, 0, 5, 4, 1, 8]), Op::Reopen, put("a", 2), without(&[3, 2, 1, 0]), Op::Reopen];
    Script::after(7, puts(0..6, 1), first.chain(then))
}

/// A region that cannot grow: puts are refused, deletes are not.
fn full() -> Script {
    let large = |key: &str| Op::Put(key.into(), vec![1; 60_000]);
    let first = [large("a"), large("b"), put("c", 3), Op::Full, large("d"), large("e"), Op::Delete("a".into())];
    let then =
        [Op::Delete("c".into()), large("f"), Op::Delete("b".into()), Op::Reopen, put("g", 1), Op::NotFull, large("g")];
    Script::fresh(4, first.into_iter().chain(then))
}

/// A full region whose keys are all deleted: each lane needs segments that only checkpoints free, and these need slots
/// that only the reserve has.
fn full_of_keys() -> Script {
    let small = |i: u8| Op::Put(vec![b'k', i.wrapping_mul(0x9e)], vec![i; 20]);
    let large = |i: u8| Op::Put(vec![b'l', i], vec![i; 60_000]);
    let delete = |i: u8| Op::Delete(vec![b'k', i.wrapping_mul(0x9e)]);
    let fills = (0..12).map(small).chain([Op::Full]).chain((0..20).map(large));
    let deletes = (0..6).map(delete).chain([Op::Reopen]).chain((6..12).map(delete));
    Script::after(9, fills, deletes.chain([Op::Delete(vec![b'l', 0]), Op::Reopen, put("a", 1)]))
}

#[test]
fn full_region_deletes_survive_every_crash() {
    let scripts = [full_of_keys()];
    let counts = survives::<Crashed<OfPmekv>>(&scripts, &settings());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
}

#[test]
fn batches_and_expiry_survive_every_crash() {
    let scripts = [batches(), groups(), groups_of_deletes(), Script::expiring(), full()];
    let counts = survives::<Crashed<OfPmekv>>(&scripts, &settings());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
}

/// Data of a killed process is relied on, and made durable.
#[test]
fn it_survives_kills() {
    let killed = Settings { end: End::Kill, visitors: vec![Visitor::Nobody], ..settings() };
    let scripts = [churn(), batches()];
    survives::<Crashed<OfPmekv>>(&scripts, &killed);
    catches::<Crashed<OfPmekv>>(canary::TAIL_LEFT_AS_FOUND, &scripts, &killed);
}

/// The second writer is also crashed at each of its steps, while the first is stopped at each of its own.
#[test]
fn two_writers_survive_crashes_of_both() {
    let both = Settings { visitors: vec![Visitor::WriterAlways], rival_images_per_step_max: 4, ..settings() };
    let script = Script::fresh(5, [put("a", 1), put("b", 2), put("a", 3), Op::Delete("b".into()), put("b", 4)]);
    survives::<Crashed<OfPmekv>>(&[script], &both);
}

#[test]
fn the_rules_of_limits_hold() {
    rules_hold::<OfPmekv>(&|| Sim::new(0, Model::Line));
}

#[test]
fn it_answers_like_a_map() {
    answers_like_a_map::<OfPmekv>(Shape { batches: true, ..shape(500) }, 0..4);
}

#[test]
fn it_survives_every_crash() {
    let scripts = [churn(), Script::seeded(2, &shape(12))];
    let counts = survives::<Crashed<OfPmekv>>(&scripts, &settings());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
}

/// Items that are moved, and writes that reuse the freed space.
#[test]
fn compactions_survive_every_crash() {
    compactions_survive::<OfPmekv>(&[evacuating()], &settings());
}

#[test]
fn broken_moves_are_caught() {
    broken_compactions_are_caught::<OfPmekv>(&[evacuating()], settings());
}

#[test]
fn moves_undo_no_write() {
    compaction_undoes_no_write::<OfPmekv>();
}
