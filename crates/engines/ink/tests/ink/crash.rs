//! Crashes of the engine's additions to the tree: keys that expire, conditional writes, readers and a second writer
//! in between. The tree's own scripts are in `pbtree`.

use pmem_sim::{Model, Sim};
use testkit::{
    Crashed, Op, Operations, Script, Settings, Shape, Subject, Visitor, conformance, evacuating, explore, hunt,
    rules_hold, writes_undone_by_moves,
};

use crate::subject::OfInk;

fn settings() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways];
    Settings { region_bytes: 1 << 20, visitors, images_per_op_max: 8, nested_images_max: 1, ..Settings::default() }
}

pub(crate) fn shape(op_count: usize) -> Shape {
    Shape { swaps: true, scans: true, clears: true, reopens: true, multi_puts: true, ..Shape::small(op_count) }
}

pub(crate) fn expiring() -> Script {
    let until = |key: &str, at_ms| Op::PutExpiring(key.into(), vec![b'v'; 12], at_ms);
    let expire = |key: &str, at_ms| Op::Expire(key.into(), at_ms);
    let first = [until("a", 10), until("b", 20), expire("b", Some(30)), expire("c", Some(5)), expire("a", None)];
    let then = [Op::At(35), until("b", 50), Op::Settle, expire("a", Some(40)), Op::At(45), Op::Settle, Op::Reopen];
    Script::fresh(1, first.into_iter().chain(then))
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
    let both = Settings { visitors: vec![Visitor::WriterAlways], rival_images_per_step_max: 4, ..settings() };
    let counts = explore::<Crashed<OfInk>>(&[script], &both).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(60, 20, 20), "{counts:?}");
}

#[test]
fn batch_that_is_half_logged_is_caught() {
    let quiet = Settings { visitors: vec![Visitor::Nobody], images_per_op_max: 200, ..settings() };
    let verdict = hunt::<Crashed<OfInk>>(pbtree::canary::BATCH_HALF_LOGGED, &[dense_batch()], &quiet);
    assert!(verdict.is_caught(), "{verdict:?}");
}

#[test]
fn the_rules_of_limits_hold() {
    rules_hold::<OfInk>(&|| Sim::new(0, Model::Line));
}

#[test]
fn it_answers_like_a_map() {
    fn new<const IN_PLACE: bool>() -> Box<dyn Operations> {
        Box::new(Crashed::<OfInk<IN_PLACE>>::format(Sim::new(0, Model::Line)).expect("there is space"))
    }
    let shape = Shape { reopens: false, batches: true, conditions: true, ..shape(500) };
    for make in [new::<false>, new::<true>] {
        let compared = conformance(make, &shape, 0..4);
        assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 2000);
    }
}

#[test]
fn it_survives_every_crash() {
    let scripts = [expiring(), thinned(), Script::seeded(2, &shape(10))];
    let counts = explore::<Crashed<OfInk>>(&scripts, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(80, 50, 50), "{counts:?}");
    let batches = Shape { batches: true, conditions: true, ..shape(8) };
    let scripts = [Script::seeded(4, &batches), dense_batch()];
    let counts = explore::<Crashed<OfInk>>(&scripts, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(80, 50, 50), "{counts:?}");
    let in_place = [Script::seeded(3, &shape(8))];
    explore::<Crashed<OfInk<true>>>(&in_place, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
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
    let scripts = [evacuating(), evacuating_and_filling()];
    let counts = explore::<Crashed<OfInk>>(&scripts, &settings()).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(80, 50, 10), "{counts:?}");
}

#[test]
fn broken_compactions_are_caught() {
    let visitors = vec![Visitor::Nobody, Visitor::WriterAlways];
    let settings = Settings { visitors, images_per_op_max: 60, ..settings() };
    for canary in [engine::canary::MOVE_FREES_EARLY, heap::canary::PUNCHED_RUN_NOT_BACKED] {
        let verdict = hunt::<Crashed<OfInk>>(canary, &[evacuating_and_filling()], &settings);
        assert!(verdict.is_caught(), "{canary:?}: {verdict:?}");
    }
}

#[test]
fn compaction_undoes_no_write() {
    let undone = |sim: Sim| writes_undone_by_moves::<OfInk>(&sim);
    assert_eq!(undone(Sim::new(0, Model::Line)), 0);
    let variant = Sim::new(0, Model::Line).with_canary(engine::canary::MOVE_UNCHECKED);
    assert_eq!(undone(variant), 1, "the broken variant does not undo the other's write");
}
