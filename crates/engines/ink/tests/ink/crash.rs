//! Crashes of the engine's additions to the tree: keys that expire, conditional writes, readers and a second writer
//! in between. The tree's own scripts are in `pbtree`.

use pmem_sim::{Model, Sim};
use testkit::{
    Crashed, Op, Script, Settings, Shape, Visitor, answers_like_a_map, broken_compactions_are_caught, catches,
    compaction_undoes_no_write, compactions_survive, evacuating, rules_hold, survives,
};

use crate::subject::OfInk;

pub(crate) fn shape(op_count: usize) -> Shape {
    Shape { swaps: true, scans: true, clears: true, reopens: true, multi_puts: true, ..Shape::small(op_count) }
}

/// A batch that fills a gap with more keys than a leaf holds, replaces some and deletes others.
pub(crate) fn dense_batch() -> Script {
    let key = |i: u32| format!("key {i:02}").into_bytes();
    let setup = [0, 5, 40, 50].map(|i| Op::Put(key(i), vec![1; 9]));
    let inserted = (10..28).map(|i| (key(i), Some(vec![i as u8; 9])));
    let changed = [(key(0), None), (key(5), Some(vec![2; 30])), (key(33), None)];
    Script::after(5, setup, [Op::Batch(inserted.chain(changed).collect()), Op::Settle])
}

/// Deletes that leave sparse leaves, which the background merges while other threads run; then keys that come back.
pub(crate) fn thinned() -> Script {
    let key = |i: u32| format!("key {i:02}").into_bytes();
    let put = |i| Op::Put(key(i), vec![i as u8; 9]);
    let setup = (0..40).map(put).chain((2..28).map(|i| Op::Delete(key(i))));
    Script::after(8, setup, [Op::Delete(key(28)), Op::Settle, put(20), Op::Delete(key(0)), Op::Reopen])
}

/// The second writer is also crashed at each of its steps, while the first is at each of its own.
#[test]
fn two_writers_survive_crashes_of_both() {
    let key = |i: u32| format!("key {i:02}").into_bytes();
    let setup = (0..6).map(|i| Op::Put(key(i), vec![1; 9]));
    let explored =
        [Op::Put(key(9), vec![2; 9]), Op::Put(key(3), vec![3; 9]), Op::Put(key(7), vec![4; 9]), Op::Delete(key(1))];
    let script = Script::after(6, setup, explored);
    let both =
        Settings { visitors: vec![Visitor::WriterAlways], rival_images_per_step_max: 4, ..Settings::of_engine() };
    let counts = survives::<Crashed<OfInk>>(&[script], &both);
    assert!(counts.reach(60, 20, 20), "{counts:?}");
}

#[test]
fn batch_that_is_half_logged_is_caught() {
    let quiet = Settings { visitors: vec![Visitor::Nobody], images_per_op_max: 200, ..Settings::of_engine() };
    catches::<Crashed<OfInk>>(pbtree::canary::BATCH_HALF_LOGGED, &[dense_batch()], &quiet);
}

#[test]
fn the_rules_of_limits_hold() {
    rules_hold::<OfInk>(&|| Sim::new(0, Model::Line));
}

#[test]
fn it_answers_like_a_map() {
    let shape = || Shape { batches: true, conditions: true, ..shape(500) };
    answers_like_a_map::<OfInk<false>>(shape(), 0..4);
    answers_like_a_map::<OfInk<true>>(shape(), 0..4);
}

#[test]
fn it_survives_every_crash() {
    let scripts = [Script::expiring(), thinned(), Script::seeded(2, &shape(10))];
    let counts = survives::<Crashed<OfInk>>(&scripts, &Settings::of_engine());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
    let batches = Shape { batches: true, conditions: true, ..shape(8) };
    let scripts = [Script::seeded(4, &batches), dense_batch()];
    let counts = survives::<Crashed<OfInk>>(&scripts, &Settings::of_engine());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
    let in_place = [Script::seeded(3, &shape(8))];
    survives::<Crashed<OfInk<true>>>(&in_place, &Settings::of_engine());
}

/// As [`evacuating`], with more values than the target chunk has slots for: they need the freed space.
fn evacuating_and_filling() -> Script {
    let mut script = evacuating();
    script.explored.truncate(1);
    script.explored.extend((20..30).map(|number| Op::Put(vec![b'k', number], vec![number; 30_000])));
    script.explored.push(Op::Reopen);
    script
}

/// Moves values, and uses the freed space.
#[test]
fn compactions_survive_every_crash() {
    compactions_survive::<OfInk>(&[evacuating(), evacuating_and_filling()], &Settings::of_engine());
}

#[test]
fn broken_moves_are_caught() {
    broken_compactions_are_caught::<OfInk>(&[evacuating_and_filling()], Settings::of_engine());
}

#[test]
fn moves_undo_no_write() {
    compaction_undoes_no_write::<OfInk>();
}
