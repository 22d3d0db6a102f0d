//! The engine crashed at every step, with readers and a second writer in between, and its broken variants, which must
//! be caught.

use pmem::Canary;
use pmem_sim::{Model, Sim};
use testkit::{
    Crashed, Op, Script, Settings, Shape, Visitor, answers_like_a_map, broken_compactions_are_caught, catches,
    compaction_undoes_no_write, compactions_survive, evacuating, rules_hold, survives,
};

use index::block_hash::canary;

use crate::subject::OfRewoHash;

/// Keys and values of every kind of slot.
pub(crate) fn shape(op_count: usize) -> Shape {
    Shape {
        keys: [&b""[..], b"a", b"a key of 16 byte", b"a key that is longer than a slot"].map(Vec::from).into(),
        value_lens_bytes: vec![0, 1, 11, 12, 15, 16, 64],
        swaps: true,
        clears: true,
        reopens: true,
        multi_puts: true,
        ..Shape::small(op_count)
    }
}

/// A batch over the slots of few keys and many, small and large.
pub(crate) fn batch() -> Script {
    let key = |i: u32| format!("key {i:02}").into_bytes();
    let setup = [0, 5, 40].map(|i| Op::Put(key(i), vec![1; 9]));
    let inserted = (10..14).map(|i| (key(i), Some(vec![i as u8; 9])));
    let changed = [(key(0), None), (key(5), Some(vec![2; 30])), (key(33), None)];
    Script::after(5, setup, [Op::Batch(inserted.chain(changed).collect()), Op::Put(key(10), vec![7; 3]), Op::Settle])
}

/// Two small keys, each put, replaced and deleted repeatedly: slots are reused.
pub(crate) fn refills() -> Script {
    let put = |key: &str, i: u8| Op::Put(key.into(), vec![i; 5]);
    let ops = (0..6).flat_map(|i| [put("a", i), put("b", i), put("a", i + 100), Op::Delete(b"b".to_vec())]);
    Script::fresh(8, ops)
}

#[test]
fn the_rules_of_limits_hold() {
    rules_hold::<OfRewoHash>(&|| Sim::new(0, Model::Line));
}

#[test]
fn it_answers_like_a_map() {
    answers_like_a_map::<OfRewoHash>(Shape { batches: true, conditions: true, ..shape(500) }, 0..4);
}

#[test]
fn it_survives_every_crash() {
    let scripts = [Script::expiring(), Script::seeded(2, &shape(10)), refills()];
    let counts = survives::<Crashed<OfRewoHash>>(&scripts, &Settings::of_engine());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
    let batches = Shape { batches: true, conditions: true, ..shape(8) };
    let scripts = [Script::seeded(4, &batches), batch()];
    let counts = survives::<Crashed<OfRewoHash>>(&scripts, &Settings::of_engine());
    assert!(counts.reach(80, 50, 50), "{counts:?}");
}

/// The second writer is also crashed at each of its steps, while the first is stopped at each of its own.
#[test]
fn two_writers_survive_crashes_of_both() {
    let both =
        Settings { visitors: vec![Visitor::WriterAlways], rival_images_per_step_max: 4, ..Settings::of_engine() };
    let counts = survives::<Crashed<OfRewoHash>>(&[refills()], &both);
    assert!(counts.reach(60, 20, 20), "{counts:?}");
}

/// The second batch waits for the turn of the first, and takes it as soon as the first has ended it.
#[test]
fn two_batches_survive_crashes_of_both() {
    let visitors = vec![Visitor::WriterAlways, Visitor::WriterAfter(6)];
    let both = Settings { visitors, rival_images_per_step_max: 4, images_per_op_max: 60, ..Settings::of_engine() };
    let counts = survives::<Crashed<OfRewoHash>>(&[batch().with_rival_batches()], &both);
    assert!(counts.reach(30, 10, 10), "{counts:?}");
    // Buckets that both batches change would keep the second one away.
    let scripts: Vec<_> = Script::rivals().take(8).map(|key| batch().with_rival(key).with_rival_batches()).collect();
    let visitors = (3..15).map(Visitor::WriterAfter).collect();
    let waiting = Settings { visitors, images_per_op_max: 500, ..Settings::of_engine() };
    catches::<Crashed<OfRewoHash>>(canary::BLOCK_BATCH_TURN_ENDED_EARLY, &scripts, &waiting);
}

fn is_caught(canary: Canary, scripts: &[Script]) {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways];
    let settings = Settings { visitors, images_per_op_max: 200, nested_images_max: 1, ..Settings::of_engine() };
    catches::<Crashed<OfRewoHash>>(canary, scripts, &settings);
}

#[test]
fn broken_writes_are_caught() {
    for canary in [canary::SLOT_NOT_FLUSHED, canary::BIT_BEFORE_SLOT, canary::UPDATE_ACROSS_BUCKETS] {
        is_caught(canary, &[refills()]);
    }
}

#[test]
fn unsettled_read_is_caught() {
    for canary in [canary::BLOCK_READ_UNSETTLED, canary::BLOCK_ABSENT_UNSETTLED, canary::LOCK_BIT_BELIEVED] {
        is_caught(canary, &[refills()]);
    }
}

#[test]
fn broken_batches_are_caught() {
    let broken = [
        canary::BLOCK_BATCH_BEFORE_RECORD,
        canary::CARRIED_OUT_BEFORE_WORD,
        canary::BLOCK_BATCH_FORGOTTEN_EARLY,
        canary::HALF_BATCH_SEEN,
    ];
    broken.into_iter().for_each(|canary| is_caught(canary, &[batch()]));
}

#[test]
fn clear_that_commits_early_is_caught() {
    let put = |key: &str| Op::Put(key.into(), vec![1; 5]);
    is_caught(index::canary::CLEAR_BEFORE_SEGMENTS, &[Script::fresh(3, [put("a"), Op::Clear, put("b"), Op::Reopen])]);
}

/// Items that are moved, and writes that reuse the freed space.
#[test]
fn compactions_survive_every_crash() {
    compactions_survive::<OfRewoHash>(&[evacuating()], &Settings::of_engine());
}

#[test]
fn broken_moves_are_caught() {
    broken_compactions_are_caught::<OfRewoHash>(&[evacuating()], Settings::of_engine());
}

#[test]
fn moves_undo_no_write() {
    compaction_undoes_no_write::<OfRewoHash>();
}
