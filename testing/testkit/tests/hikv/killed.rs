//! HiKV whose process is killed at every step. The next process finds every byte that was stored, durable or not, opens
//! the store, reads it and continues. Then the power fails, at every step of that, and takes everything that neither
//! process has made durable.
//!
//! Values that the second process has read are present after the loss of power as well, and so is everything that
//! either process acknowledged.

use pmem_sim::Model;
use testkit::{End, OnDisk, Script, Settings, Verdict, Visitor, catches, hunt};

use crate::batches;
use crate::closes::closed_and_changed;
use crate::journaled;
use crate::scripts::{clears_and_reopens, crowded_chunk, everyday, growth, reopened_after_a_split, several_at_once};
use crate::subject::{Crashed, InOrder, NoOrder};
use crate::{passes, settings};

/// Settings for kills. Each step has one image of a kill. A few images of the following power loss are enough: nothing
/// pending survives, everything does, and some mixtures.
fn kills(images_per_op_max: usize) -> Settings {
    Settings {
        models: vec![Model::Line],
        end: End::Kill,
        images_per_step_max: 8,
        images_per_op_max,
        nested_images_max: 6,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways],
        ..settings()
    }
}

fn on_disk() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4)];
    Settings { end: End::Kill, nested_images_max: 4, visitors, ..journaled::settings() }
}

#[test]
fn killed_process_data_survives_next_kill() {
    let counts = passes::<Crashed>(&everyday(), &kills(40));
    assert!(counts.reach(100, 500, 0), "{counts:?}");
    passes::<Crashed>(&[clears_and_reopens(), vec![several_at_once()]].concat(), &kills(20));
    passes::<InOrder>(&everyday()[..1], &kills(20));
}

#[test]
fn killed_batches_and_closes_survive_next_kill() {
    passes::<Crashed>(&[batches::several_changes_at_once(), closed_and_changed()], &kills(20));
}

#[test]
fn killed_splits_and_growth_survive_next_kill() {
    let few = Settings { visitors: vec![Visitor::Nobody], nested_images_max: 2, ..kills(12) };
    passes::<Crashed>(&[reopened_after_a_split(), crowded_chunk(), growth()], &few);
}

/// Any part of the head that was seen but is not durable: a generation, a mark, a committed split.
#[test]
fn head_left_unsettled_is_caught() {
    let scripts: Vec<Script> = clears_and_reopens();
    let verdict = hunt::<Crashed>(heap::canary::HEAD_LEFT_AS_FOUND, &scripts, &kills(60));
    assert!(matches!(&verdict, Verdict::Caught(violation) if violation.images.len() == 2), "{verdict:?}");
}

#[test]
fn killed_process_disk_writes_survive_next_kill() {
    let counts = journaled::passes(&[everyday(), vec![several_at_once()]].concat(), &on_disk());
    assert!(counts.reach(50, 200, 0), "{counts:?}");
}

#[test]
fn log_assumed_durable_is_caught() {
    let settings = Settings { visitors: vec![Visitor::Nobody], nested_images_max: 40, ..on_disk() };
    catches::<Crashed<NoOrder, OnDisk>>(journal::canary::TAIL_NOT_REWRITTEN, &everyday()[..1], &settings);
}

#[test]
#[ignore = "many minutes"]
fn stores_of_killed_processes_survive_for_long() {
    let scripts = [everyday(), clears_and_reopens(), vec![several_at_once(), closed_and_changed()]].concat();
    passes::<Crashed>(&scripts, &Settings { visitors: Visitor::all(6), nested_images_max: 16, ..kills(2000) });
    passes::<InOrder>(&scripts, &Settings { nested_images_max: 16, ..kills(500) });
    passes::<Crashed>(&[reopened_after_a_split(), crowded_chunk(), growth()], &kills(200));
    journaled::passes(&scripts, &Settings { images_per_op_max: 500, nested_images_max: 16, ..on_disk() });
    journaled::passes(&[journaled::filling()], &Settings { nested_images_max: 1, images_per_op_max: 4, ..on_disk() });
}
