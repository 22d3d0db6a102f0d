//! Two writers in flight, crashed at the steps of both: one is stopped between two steps while the other makes all of
//! its own, and the power fails at each of those. So every place of the one is combined with every place of the other.

use pmem_sim::{Model, StepKind};
use testkit::{Op, PAUSE, Script, Settings, Visitor};

use crate::batches::several_changes_at_once;
use crate::closes::closed_and_changed;
use crate::deferred;
use crate::journaled;
use crate::scripts::{clears_and_reopens, delete, everyday, put, several_at_once};
use crate::subject::{Crashed, InOrder, NoOrder};
use crate::{caught, passes, settings};

fn both(visitor: Visitor) -> Settings {
    Settings {
        visitors: vec![visitor],
        images_per_step_max: 2,
        rival_images_per_step_max: 4,
        images_per_op_max: 60,
        nested_images_max: 1,
        ..settings()
    }
}

#[test]
fn two_writers_survive_wherever_both_are() {
    let counts = passes::<Crashed>(&[everyday(), vec![several_at_once()]].concat(), &both(Visitor::WriterAlways));
    assert!(counts.reach(500, 0, 0), "{counts:?}");
    let scripts = [clears_and_reopens(), vec![several_changes_at_once(), closed_and_changed()]].concat();
    let few = Settings { models: vec![Model::Line], images_per_op_max: 25, ..both(Visitor::WriterAlways) };
    passes::<Crashed>(&scripts, &few);
    passes::<InOrder>(&everyday()[..1], &few);
}

/// Snapshots are taken and released while another writer is active, and the log is waited for.
#[test]
fn second_writer_survives_with_snapshots() {
    let ops = [put("a", "1"), Op::Snapshot, put("a", "2"), delete("a"), Op::Snapshot, put("b", "3"), Op::Release];
    let few = Settings { models: vec![Model::Line], images_per_op_max: 25, ..both(Visitor::WriterAlways) };
    passes::<Crashed>(&[Script::fresh(90, ops)], &few);
}

#[test]
fn two_writers_survive_on_a_disk() {
    for visitor in [Visitor::WriterAt(StepKind::FileWrite), Visitor::WriterAt(StepKind::WaitBegin)] {
        let settings = Settings {
            visitors: vec![visitor],
            rival_images_per_step_max: 4,
            images_per_op_max: 25,
            ..journaled::sparing()
        };
        journaled::passes(&[everyday(), vec![several_at_once()]].concat(), &settings);
    }
}

/// The same with deferred operations: the second writer also comes between an operation and its answer.
#[test]
fn two_writers_survive_deferred_results() {
    for visitor in [Visitor::WriterAt(StepKind::FileWrite), Visitor::WriterAt(PAUSE)] {
        let settings = Settings {
            visitors: vec![visitor],
            rival_images_per_step_max: 4,
            images_per_op_max: 25,
            ..journaled::sparing()
        };
        let counts = deferred::passes::<NoOrder>(&[everyday(), vec![several_at_once()]].concat(), &settings);
        assert!(counts.visits > 10, "{counts:?}");
    }
}

/// Two batches. On memory, the second comes at every step of the first. On a log it comes as well while the first waits
/// for the disk, and then uses the same batch word.
#[test]
fn two_batches_survive_wherever_both_are() {
    let script = || several_changes_at_once().with_rival_batches();
    let few = Settings { images_per_op_max: 25, ..both(Visitor::WriterAlways) };
    passes::<Crashed>(&[script()], &few);
    for visitor in [Visitor::WriterAt(StepKind::FileWrite), Visitor::WriterAt(StepKind::WaitBegin)] {
        let settings = Settings { visitors: vec![visitor], rival_images_per_step_max: 4, ..journaled::sparing() };
        journaled::passes(&[script()], &settings);
    }
    let violation = caught(index::canary::BATCH_TURN_ENDED_EARLY, Model::Line, &[script()], few);
    assert!(matches!(violation.op, Op::Batch(_)), "caught at another operation: {violation}");
}

/// Only images of the second writer's steps.
#[test]
fn loss_at_second_writer_is_noticed() {
    let beside_alone = Settings { images_per_step_max: 0, ..both(Visitor::WriterAlways) };
    caught(engine_hikv::canary::ITEM_NOT_ORDERED, Model::Line, &everyday(), beside_alone);
}

#[test]
#[ignore = "many minutes"]
fn two_writers_survive_for_long() {
    let scripts = [everyday(), clears_and_reopens(), vec![several_changes_at_once(), closed_and_changed()]].concat();
    let far = || Settings { images_per_op_max: 3000, nested_images_max: 4, ..both(Visitor::WriterAlways) };
    passes::<Crashed>(&scripts, &far());
    passes::<InOrder>(&scripts, &far());
}
