//! Allocation: no byte is handed out twice, and freed bytes are handed out again.

use std::collections::BTreeMap;

use heap::layout::{SEGMENT_BYTES, UNIT_BYTES};
use heap::{Class, Heap, Place, PlaceKind};
use proptest::prelude::*;

use crate::memory::{Host, Memory};

/// The places in use, by offset.
#[derive(Default)]
pub(crate) struct Model {
    allocated: BTreeMap<u64, (Place, u64)>,
}

impl Model {
    /// Adds a place that holds `len_bytes` and overlaps no other.
    pub(crate) fn add(&mut self, heap: &Heap<Host>, place: Place, len_bytes: u64) {
        let (start, capacity_bytes) = (place.offset.0, heap.table().check_place(place).expect("a place"));
        assert!(capacity_bytes >= len_bytes && start % 16 == 0 && start >= UNIT_BYTES);
        let before = self.allocated.range(..=start).next_back();
        assert!(before.is_none_or(|(at, (_, bytes))| at + bytes <= start), "{place:?} overlaps {before:?}");
        let after = self.allocated.range(start..).next();
        assert!(after.is_none_or(|(at, _)| start + capacity_bytes <= *at), "{place:?} overlaps {after:?}");
        self.allocated.insert(start, (place, capacity_bytes));
    }

    /// Removes an arbitrary place.
    pub(crate) fn remove(&mut self, pick: usize) -> Option<Place> {
        let start = *self.allocated.keys().nth(pick % self.allocated.len().max(1))?;
        self.allocated.remove(&start).map(|(place, _)| place)
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.allocated.values().map(|(place, _)| *place)
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.allocated.values().map(|(_, bytes)| bytes).sum()
    }
}

/// A step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Reserve { len_bytes: u64, lane: usize },
    Cancel { len_bytes: u64 },
    Segment,
    Free { pick: usize },
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len_bytes = prop_oneof![8 => 0..1_000u64, 2 => 0..300_000u64, 1 => 260_000..3_000_000u64];
    let step = prop_oneof![
        6 => (len_bytes.clone(), 0..3usize).prop_map(|(len_bytes, lane)| Step::Reserve { len_bytes, lane }),
        1 => len_bytes.prop_map(|len_bytes| Step::Cancel { len_bytes }),
        1 => Just(Step::Segment),
        5 => any::<usize>().prop_map(|pick| Step::Free { pick }),
    ];
    prop::collection::vec(step, 1..400)
}

/// Applies a step to heap and model alike.
pub(crate) fn run(memory: &Memory, heap: &Heap<Host>, model: &mut Model, step: &Step) {
    match *step {
        Step::Reserve { len_bytes, lane } => {
            model.add(heap, heap.reserve(memory, len_bytes, lane).unwrap().publish(), len_bytes);
        }
        Step::Cancel { len_bytes } => drop(heap.reserve(memory, len_bytes, 0).unwrap()),
        Step::Segment => model.add(heap, heap.reserve_segment(memory).unwrap().publish(), SEGMENT_BYTES),
        Step::Free { pick } => model.remove(pick).into_iter().for_each(|place| heap.free(memory, place)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn places_never_overlap_and_figures_add_up(steps in steps()) {
        let (memory, heap) = Memory::formatted();
        let mut model = Model::default();
        for step in &steps {
            run(&memory, &heap, &mut model, step);
            prop_assert_eq!(heap.stats().live_bytes, model.live_bytes());
        }
        while let Some(place) = model.remove(0) {
            heap.free(&memory, place);
        }
        let stats = heap.stats();
        prop_assert_eq!(stats.live_bytes, 0);
        prop_assert!(stats.free_bytes <= stats.region_bytes - UNIT_BYTES);
    }
}

#[test]
fn lengths_up_to_extents_are_allocated() {
    let (memory, heap) = Memory::formatted();
    let mut model = Model::default();
    for len_bytes in (0..300_000).step_by(509) {
        model.add(&heap, heap.reserve(&memory, len_bytes, 0).unwrap().publish(), len_bytes);
    }
}

#[test]
fn region_is_stable_while_sizes_vary() {
    let (memory, heap) = Memory::formatted();
    let mut seed = 7u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let lengths = [20, 100, 272, 1_000, 4_000, 40_000, 500_000];
    let mut places: Vec<Place> = (0..20_000)
        .map(|i| heap.reserve(&memory, lengths[i % if i < 200 { 7 } else { 4 }], 0).unwrap().publish())
        .collect();
    let mut churn = |count| {
        for _ in 0..count {
            let place = &mut places[random(20_000)];
            let len_bytes = heap.table().check_place(*place).unwrap();
            heap.free(&memory, *place);
            *place = heap.reserve(&memory, len_bytes, random(2)).unwrap().publish();
        }
    };
    churn(20_000);
    let mark_bytes = heap.stats().mark_bytes;
    churn(400_000);
    assert_eq!(heap.stats().mark_bytes, mark_bytes);
}

#[test]
fn half_free_chunks_are_used_before_growth() {
    for len_bytes in [16, 272, 4_000, 30_000, 250_000] {
        let (memory, heap) = Memory::formatted();
        let reserve = || heap.reserve(&memory, len_bytes, 0).unwrap().publish();
        let places: Vec<Place> = (0..(64 << 20) / len_bytes).map(|_| reserve()).collect();
        let mark_bytes = heap.stats().mark_bytes;
        places.iter().step_by(2).for_each(|place| heap.free(&memory, *place));
        for _ in 0..places.len() / 2 {
            reserve();
        }
        assert_eq!(heap.stats().mark_bytes, mark_bytes, "items of {len_bytes} bytes");
    }
}

#[test]
fn empty_chunks_serve_every_size() {
    let (memory, heap) = Memory::formatted();
    let fill = |len_bytes: u64| -> Vec<Place> {
        (0..(48 << 20) / len_bytes).map(|_| heap.reserve(&memory, len_bytes, 0).unwrap().publish()).collect()
    };
    fill(100).iter().for_each(|place| heap.free(&memory, *place));
    let mark_bytes = heap.stats().mark_bytes;
    for len_bytes in [3_000, 100_000, 700_000, 20 << 20, 500] {
        fill(len_bytes).iter().for_each(|place| heap.free(&memory, *place));
    }
    let held_bytes = 8 * (2 << 20);
    assert!(heap.stats().mark_bytes <= mark_bytes + held_bytes, "lanes hold a chunk of each size, no more");
}

/// Nothing is in use, so all of it becomes one run again: chunks of lanes, of any class, and cancelled reservations.
#[test]
fn empty_region_is_merged_into_one_run() {
    let (memory, heap) = Memory::formatted();
    let mut places: Vec<Place> =
        (0..200u64).map(|i| heap.reserve(&memory, i * 6_007 % 400_000, i as usize % 3).unwrap().publish()).collect();
    places.extend((0..200).map(|_| heap.reserve_segment(&memory).unwrap().publish()));
    let cancelled = [700_000, 20, 300_000, 90_000].map(|len_bytes| heap.reserve(&memory, len_bytes, 1).unwrap());
    places.iter().for_each(|place| heap.free(&memory, *place));
    drop(cancelled);
    heap.gather(&memory);
    let stats = heap.stats();
    assert_eq!((stats.live_bytes, stats.chunk_count), (0, 0));
    let whole_bytes = stats.mark_bytes - 2 * UNIT_BYTES;
    drop(heap.reserve_extent(&memory, whole_bytes).unwrap());
    assert_eq!(heap.stats().mark_bytes, stats.mark_bytes);
}

#[test]
fn second_free_of_place_changes_nothing() {
    let (memory, heap) = Memory::formatted();
    for len_bytes in [100, 300_000] {
        let place = heap.reserve(&memory, len_bytes, 0).unwrap().publish();
        heap.free(&memory, place);
        let stats = heap.stats();
        heap.free(&memory, place);
        assert_eq!(heap.stats(), stats);
    }
}

#[test]
fn segment_begins_with_zero_line() {
    let (memory, heap) = Memory::formatted();
    let dirty = heap.reserve(&memory, (1 << 20) - 64, 0).unwrap().publish();
    (0..1 << 20).step_by(8).skip(8).for_each(|at| memory.set_word(dirty.offset.0 - 64 + at, u64::MAX));
    heap.free(&memory, dirty);
    let segment = heap.reserve_segment(&memory).unwrap().publish();
    assert_eq!(segment.kind, PlaceKind::Segment);
    assert_eq!(segment.offset.0, dirty.offset.0 - 64 + SEGMENT_BYTES);
    let mut found = vec![];
    heap.sweep().segments(&mut |offset| found.push(offset));
    assert_eq!(found.len(), 63);
    assert!(found.iter().all(|offset| memory.bytes(offset.0, 64) == [0; 64]));
}

#[test]
fn cancelled_place_is_reused() {
    let (memory, heap) = Memory::formatted();
    let class = Class::for_bytes(5_000).unwrap();
    let mark_bytes = {
        drop(heap.reserve(&memory, 5_000, 0).unwrap());
        heap.stats().mark_bytes
    };
    (0..10 * 262_144 / class.bytes()).for_each(|_| drop(heap.reserve(&memory, 5_000, 0).unwrap()));
    assert_eq!((heap.stats().mark_bytes, heap.stats().live_bytes), (mark_bytes, 0));
    (0..100).for_each(|_| drop(heap.reserve(&memory, 900_000, 0).unwrap()));
    let reservation = heap.reserve(&memory, 900_000, 0).unwrap();
    let spare_bytes = heap.chunks().spare_bytes();
    drop(reservation);
    assert_eq!(heap.chunks().spare_bytes(), spare_bytes + 14 * UNIT_BYTES);
    assert!(heap.stats().mark_bytes <= mark_bytes + 900_000 + UNIT_BYTES);
}

/// Slots that refer to one another, as InK's nodes, stay where they are.
#[test]
fn nonempty_chunk_is_not_newly_free() {
    let (memory, heap) = Memory::formatted();
    let places: Vec<_> = (0..20_000).map(|_| heap.reserve(&memory, 100, 0).unwrap().publish()).collect();
    places.iter().step_by(2).for_each(|place| heap.free(&memory, *place));
    heap.gather(&memory);
    heap.supply().reset_newly_free();
    let (evacuation, mut chunks) = (heap.evacuation(), Vec::new());
    evacuation.each_unowned_chunk(&mut |chunk| chunks.push(chunk));
    chunks.retain(|&chunk| evacuation.evacuate(chunk));
    assert!(chunks.len() > 2, "{chunks:?}");
    chunks.iter().for_each(|&chunk| evacuation.stop_evacuating(&memory, chunk));
    assert_eq!(heap.supply().newly_free_bytes(), 0);
    let mark_bytes = heap.stats().mark_bytes;
    (0..5_000).for_each(|_| _ = heap.reserve(&memory, 100, 0).unwrap().publish());
    assert_eq!(heap.stats().mark_bytes, mark_bytes, "the gaps of these chunks are used");
    places.iter().skip(1).step_by(2).for_each(|place| heap.free(&memory, *place));
    assert!(heap.supply().newly_free_bytes() > 0);
}
