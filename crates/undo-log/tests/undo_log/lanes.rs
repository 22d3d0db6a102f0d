//! Lanes without crashes: which writer holds one, how many fences a change has, what is refused.

use heap::HeapError;
use pmem::{Bytes, Counted, Medium, Offset, Persist, seal};
use pmem_sim::{Lent, Model};
use undo_log::{Lanes, layout};

use crate::scene::{LANE_COUNT, Scene};

#[test]
fn a_lane_has_one_holder_and_the_next_is_taken() {
    let scene = Scene::format(Model::Line, None, false);
    let (first, second) = (scene.lanes.take(1), scene.lanes.take(1));
    assert_eq!((first.index(), second.index()), (1, 0));
    drop(first);
    assert_eq!(scene.lanes.take(0).index(), 1);
}

#[test]
fn a_change_has_three_fences() {
    let scene = Scene::format(Model::Line, None, false);
    scene.sim.unobserve();
    let counted = Counted::new(scene.sim.clone());
    let mut lane = scene.lanes.take(0);
    let at = Offset(40_000);
    let before = counted.counts().unwrap();
    // SAFETY: nobody else uses the region.
    unsafe { lane.log(&counted, &[at.span(8)]) };
    counted.store(at, 1, std::sync::atomic::Ordering::Release);
    counted.flush(at.span(8));
    lane.finish(&counted);
    let after = counted.counts().unwrap();
    assert_eq!(after.fence_count - before.fence_count, 3);
}

#[test]
fn damaged_lanes_are_refused() {
    for (at, word) in [(layout::number_at(1), 7), (layout::log_at(0), 7), (layout::log_at(0), seal(77))] {
        let scene = Scene::format(Model::Line, None, false);
        scene.sim.unobserve();
        scene.sim.store(at, word, std::sync::atomic::Ordering::Release);
        let heap = heap::Heap::open(&scene.sim, heap::EngineNumber::INK, Lent).unwrap();
        let opened: Result<_, HeapError> = Lanes::open(&scene.sim, &heap, LANE_COUNT, Lent);
        assert!(matches!(opened, Err(HeapError::Damaged { offset, .. }) if offset == at.0));
    }
}
