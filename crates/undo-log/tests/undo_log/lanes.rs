//! Tests of lanes without crashes: the holder of a lane, the number of fences of a change, and refused regions.

use std::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Bytes, Counted, Level, Medium, Offset, Persist, seal};
use pmem_sim::{Model, Sim, SimDram};
use undo_log::{Lanes, Recovered, layout};

use crate::scene::{LANE_COUNT, Scene};

#[test]
fn lane_has_one_holder() {
    let scene = Scene::format(Model::Line, None, false);
    let (first, second) = (scene.lanes.take(1), scene.lanes.take(1));
    assert_eq!((first.index(), second.index()), (1, 0));
    drop(first);
    assert_eq!(scene.lanes.take(0).index(), 1);
}

#[test]
fn change_has_three_fences() {
    let scene = Scene::format(Model::Line, None, false);
    scene.sim.unobserve();
    let counted = Counted::new(scene.sim.clone());
    let mut lane = scene.lanes.take(0);
    let at = Offset(40_000);
    let before = counted.counts().unwrap();
    // SAFETY: no other thread uses the region.
    unsafe { lane.log(&counted, &[at.span(8)]) };
    counted.store(at, 1, Ordering::Release);
    counted.flush(at.span(8));
    lane.finish(&counted);
    let after = counted.counts().unwrap();
    assert_eq!(after.fence_count - before.fence_count, 3);
}

/// A range for 'the words behind the last one', which is empty and within a line.
#[test]
fn empty_range_is_logged() {
    for model in [Model::Line, Model::Span] {
        let scene = Scene::format(model, None, false);
        scene.sim.unobserve();
        let (changed, empty) = (Offset(40_000).span(8), Offset(40_040).span(0));
        // SAFETY: no other thread uses the region.
        unsafe { scene.lanes.take(0).log(&scene.sim, &[changed, empty]) };
        scene.sim.store(changed.start, 1, Ordering::Release);
        scene.sim.flush(changed);
        scene.sim.wait(scene.sim.commit(Level::default())).unwrap();
        let left = Sim::from_image(&scene.sim.images(1, 0)[0], model);
        assert_eq!(left.load(changed.start, Ordering::Relaxed), 1);
        let heap = heap::Heap::open(&left, heap::EngineNumber::INK, SimDram).unwrap();
        let recovered = Lanes::open(&left, &heap, LANE_COUNT, SimDram).unwrap().recover(&left);
        assert_eq!((recovered, left.load(changed.start, Ordering::Relaxed)), (Ok(Recovered { undone_count: 1 }), 0));
    }
}

#[test]
fn damaged_lanes_are_refused() {
    for (at, word) in [(layout::number_at(1), 7), (layout::log_at(0), 7), (layout::log_at(0), seal(77))] {
        let scene = Scene::format(Model::Line, None, false);
        scene.sim.unobserve();
        scene.sim.store(at, word, Ordering::Release);
        let heap = heap::Heap::open(&scene.sim, heap::EngineNumber::INK, SimDram).unwrap();
        let opened: Result<_, HeapError> = Lanes::open(&scene.sim, &heap, LANE_COUNT, SimDram);
        assert!(matches!(opened, Err(HeapError::Damaged { offset, .. }) if offset == at.0));
    }
}
