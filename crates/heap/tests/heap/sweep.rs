//! The sweep against a model: places that were reached and not freed live, everything else is free.

use std::cell::RefCell;
use std::collections::BTreeSet;

use heap::layout::UNIT_BYTES;
use heap::{Class, EngineNumber, Heap, Place};
use proptest::prelude::*;

use crate::allocation::{Model, Step, run, steps};
use crate::memory::{Host, Memory};

/// The fate of a place that existed at the open.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Lost,
    Reached,
    FreedThenReached,
    ReachedThenFreed,
    FreedUnreached,
    FreedAfterwards,
    UnlinkedThenFreedAfterwards,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    use Fate::*;
    let fate = prop::sample::select(vec![
        Lost,
        Reached,
        Reached,
        FreedThenReached,
        ReachedThenFreed,
        FreedUnreached,
        FreedAfterwards,
        UnlinkedThenFreedAfterwards,
    ]);
    prop::collection::vec(fate, 400)
}

fn meet(memory: &Memory, heap: &Heap<Host>, place: Place, fate: Fate) {
    let reach = || assert_eq!(heap.sweep().mark_reached(place), Ok(true));
    match fate {
        Fate::Lost => {}
        Fate::Reached | Fate::FreedAfterwards => reach(),
        Fate::UnlinkedThenFreedAfterwards => heap.sweep().mark_unlinked(place),
        Fate::FreedUnreached => heap.free(memory, place),
        Fate::FreedThenReached => {
            heap.free(memory, place);
            reach();
        }
        Fate::ReachedThenFreed => {
            reach();
            heap.free(memory, place);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_sweep_equals_the_model(before in steps(), fates in fates(), during in steps(), after in steps()) {
        let (memory, heap) = Memory::formatted();
        let mut old = Model::default();
        before.iter().for_each(|step| run(&memory, &heap, &mut old, step));
        drop(heap);

        let host = Host::default();
        let heap = Heap::open(&memory, EngineNumber::HIKV, host.clone()).unwrap();
        let old_mark_bytes = heap.stats().mark_bytes;
        let mut model = Model::default();
        let mut later = vec![];
        for ((place, fate), step) in old.places().zip(fates).zip(during.iter().cycle()) {
            meet(&memory, &heap, place, fate);
            let is_late = matches!(fate, Fate::FreedAfterwards | Fate::UnlinkedThenFreedAfterwards);
            if is_late || fate == Fate::Reached {
                model.add(&heap, place, 0);
            }
            later.extend(is_late.then_some(place));
            let known: BTreeSet<_> = model.places().map(|place| place.offset).collect();
            if !matches!(step, Step::Free { .. }) {
                run(&memory, &heap, &mut model, step);
            }
            let fresh = model.places().filter(|place| !known.contains(&place.offset));
            prop_assert!(fresh.into_iter().all(|place| place.offset.0 >= old_mark_bytes));
        }
        prop_assert!(!heap.is_swept());
        prop_assert!(heap.stats().live_bytes >= model.live_bytes());
        heap.sweep().finish(&memory);
        prop_assert!(heap.is_swept());
        prop_assert_eq!(heap.stats().live_bytes, model.live_bytes());
        let mut swept = Model::default();
        for place in model.places().filter(|place| !later.contains(place)) {
            prop_assert_eq!(heap.sweep().mark_reached(place), Ok(true));
            swept.add(&heap, place, 0);
        }
        later.iter().for_each(|place| heap.free(&memory, *place));
        after.iter().for_each(|step| run(&memory, &heap, &mut swept, step));
        prop_assert_eq!(heap.stats().live_bytes, swept.live_bytes());
        drop(heap);
        prop_assert_eq!(host.left_bytes(), Host::default().left_bytes());
    }
}

#[test]
fn place_reached_twice_has_two_owners() {
    let (memory, heap) = Memory::formatted();
    let places = [100, 300_000].map(|len_bytes| heap.reserve(&memory, len_bytes, 0).unwrap().publish());
    let segment = heap.reserve_segment(&memory).unwrap().publish();
    drop(heap);
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    for place in places.into_iter().chain([segment]) {
        assert_eq!(heap.sweep().mark_reached(place), Ok(true));
        assert_eq!(heap.sweep().mark_reached(place), Ok(false));
    }
    let young = heap.reserve(&memory, 100, 0).unwrap().publish();
    assert_eq!(heap.sweep().mark_reached(young), Ok(true));
    assert_eq!(heap.sweep().mark_reached(young), Ok(true));
}

#[test]
fn unreached_region_is_one_free_run() {
    let (memory, heap) = Memory::formatted();
    for i in 0..20_000 {
        heap.reserve(&memory, [50, 500, 5_000, 300_000][i % if i < 100 { 4 } else { 3 }], i).unwrap().publish();
    }
    drop(heap);
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    heap.sweep().finish(&memory);
    let stats = heap.stats();
    assert_eq!((stats.live_bytes, stats.chunk_count), (0, 0));
    let below_mark_bytes = stats.mark_bytes - UNIT_BYTES;
    let place = heap.reserve(&memory, below_mark_bytes - 64, 0).unwrap().publish();
    assert_eq!(place.offset.0, UNIT_BYTES + 64);
    assert_eq!(heap.stats().mark_bytes, stats.mark_bytes);
    drop(heap);
    assert!(Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap().table().check_place(place).is_ok());
}

#[test]
fn recovery_meets_every_segment_slot() {
    let (memory, heap) = Memory::formatted();
    let reserved: BTreeSet<_> = (0..100).map(|_| heap.reserve_segment(&memory).unwrap().publish().offset).collect();
    drop(heap);
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    let found = RefCell::new(BTreeSet::new());
    heap.sweep().segments(&mut |offset| assert!(found.borrow_mut().insert(offset)));
    assert_eq!(found.borrow().len(), 126);
    assert!(found.borrow().is_superset(&reserved));
}

/// Unreached slots are kept one by one, as many as requested, and not handed out again; the other slots are swept.
#[test]
fn slots_that_nothing_reaches_are_kept() {
    let (memory, heap) = Memory::formatted();
    let all: Vec<_> = (0..100).map(|_| heap.reserve(&memory, 4_096, 0).unwrap().publish()).collect();
    let other = heap.reserve(&memory, 100, 0).unwrap().publish();
    drop(heap);
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    assert_eq!(heap.sweep().mark_reached(other), Ok(true));
    all[..40].iter().for_each(|&place| assert_eq!(heap.sweep().mark_reached(place), Ok(true)));
    let (class, mut kept) = (Class::for_bytes(4_096).unwrap(), Vec::new());
    heap.sweep().keep_unreached(class, 50, |offset| kept.push(offset));
    let mut more = Vec::new();
    heap.sweep().finish(&memory);
    heap.sweep().keep_unreached(class, 50, |offset| more.push(offset));
    let unreached: BTreeSet<_> = all[40..].iter().map(|place| place.offset).collect();
    assert!(kept.len() == 50 && more.is_empty());
    let mut taken: BTreeSet<_> = kept.iter().copied().collect();
    assert!(taken.len() == 50 && kept.iter().filter(|offset| unreached.contains(offset)).count() >= 24);
    for _ in 0..200 {
        assert!(taken.insert(heap.reserve(&memory, 4_096, 0).unwrap().publish().offset));
    }
    assert!(all[..40].iter().all(|place| !taken.contains(&place.offset)));
    assert!(unreached.iter().all(|offset| taken.contains(offset)));
}
