//! Crashes at every step of changes, of recovery, and of a recovery after a crashed recovery.

use pmem::{Canary, Medium};
use pmem_sim::Model;

use crate::scene::Scene;

/// Runs changes of one lane after the other, of both at the same time, shorter ones over longer ones, and of single
/// words.
fn run(scene: &Scene) {
    let (mut first, mut second) = (scene.lanes.take(0), scene.lanes.take(1));
    let long = vec![(0, 1), (1, 2), (9, 3), (17, 4)];
    scene.begin(&mut first, &long);
    scene.end(&mut first, &long);
    let (outer, mut inner) = (vec![(0, 5), (10, 6)], vec![(2, 7), (24, 8)]);
    if scene.sim.breaks(undo_log::canary::WORD_IN_TWO_LANES) {
        inner = vec![(2, 7), (10, 8)];
    }
    scene.begin(&mut first, &outer);
    scene.begin(&mut second, &inner);
    scene.end(&mut second, &inner);
    scene.end(&mut first, &outer);
    scene.swap(&mut second, 2, 9);
    let again = vec![(2, 10), (3, 11), (25, 12)];
    scene.begin(&mut second, &again);
    scene.end(&mut second, &again);
    scene.swap(&mut first, 25, 13);
}

fn explore(model: Model, canary: Option<Canary>, is_killed: bool) -> (Option<String>, usize) {
    let scene = Scene::format(model, canary, is_killed);
    run(&scene);
    scene.end_of_script()
}

#[test]
fn every_crash_leaves_changes_atomic() {
    for (model, image_count_min) in [(Model::Line, 200), (Model::Span, 60)] {
        let (objection, image_count) = explore(model, None, false);
        assert_eq!(objection, None);
        assert!(image_count >= image_count_min, "{model:?}: {image_count} images show nothing");
    }
}

#[test]
fn killed_process_leftovers_become_durable() {
    let (objection, image_count) = explore(Model::Line, None, true);
    assert_eq!(objection, None);
    assert!(image_count >= 60, "{image_count} images show nothing");
}

#[test]
fn broken_variants_are_caught() {
    for canary in [
        undo_log::canary::LOG_NOT_ORDERED,
        undo_log::canary::NUMBER_BEFORE_CHANGE,
        undo_log::canary::RUN_CHECKSUM_IGNORED,
        undo_log::canary::OLD_RUN_REPLAYED,
        undo_log::canary::NUMBER_BEFORE_RESTORE,
        undo_log::canary::RESTORE_NOT_ORDERED,
        undo_log::canary::WORD_IN_TWO_LANES,
    ] {
        assert!(explore(Model::Line, Some(canary), false).0.is_some(), "{canary:?} went unnoticed");
    }
    assert!(explore(Model::Line, Some(undo_log::canary::WORD_LEFT_AS_FOUND), true).0.is_some());
}
