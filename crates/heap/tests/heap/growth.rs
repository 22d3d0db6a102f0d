//! Growth, and the errors when a region cannot grow.

use heap::layout::UNIT_BYTES;
use heap::{Class, EngineNumber, Heap, HeapError, LANE_COUNT};
use pmem::{Bytes, MediumError};

use crate::memory::{Host, Memory};

#[test]
fn region_grows_by_steps_and_reopens() {
    let (memory, heap) = Memory::formatted();
    let mut lengths = vec![];
    for _ in 0..100 {
        heap.reserve(&memory, 500_000, 0).unwrap().publish();
        lengths.push(heap.stats().region_bytes);
    }
    lengths.dedup();
    assert!(lengths.windows(2).all(|pair| pair[1] - pair[0] == 4 << 20), "{lengths:?}");
    drop(heap);
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    assert_eq!(heap.region().superblock().region_bytes, *lengths.last().unwrap());
}

/// The background grows by half of the spare space, and never by more than is lacking. If that does not fit, by a
/// step, or by the least.
#[test]
fn background_growth_scales_with_spare_space() {
    let (memory, heap) = Memory::formatted();
    let grown = |ahead_bytes| {
        let before_bytes = heap.stats().region_bytes;
        while heap.stats().region_bytes == before_bytes && heap.prepare(&memory, ahead_bytes) {}
        heap.stats().region_bytes - before_bytes
    };
    let units = |bytes: u64| bytes / (4 << 20);
    let steps: Vec<u64> = (0..6).map(|_| units(grown(60 << 20))).collect();
    assert_eq!((steps, grown(60 << 20)), (vec![1, 1, 1, 1, 2, 3], 16 << 20));
    assert_eq!((grown(59 << 20), heap.chunks().spare_bytes() >> 20), (4 << 20, 59));
    memory.set_limit_bytes(heap.stats().region_bytes + (5 << 20));
    assert_eq!([(); 3].map(|()| grown(100 << 20)), [4 << 20, UNIT_BYTES, UNIT_BYTES]);
}

/// Each attempt takes time in the kernel, during which no writer can grow the region.
#[test]
fn refused_growth_waits_for_a_writer() {
    let (memory, heap) = Memory::formatted();
    let prepare = || (0..100).filter(|_| heap.prepare(&memory, 60 << 20)).count();
    memory.set_limit_bytes(heap.stats().region_bytes);
    assert!(prepare() < 100);
    let count = memory.growth_count();
    assert_eq!((prepare(), memory.growth_count()), (0, count));
    memory.set_limit_bytes(120 << 20);
    assert_eq!((prepare(), memory.growth_count()), (0, count));
    heap.reserve(&memory, heap.chunks().spare_bytes() + 1, 0).unwrap().publish();
    assert!(prepare() > 0 && heap.chunks().spare_bytes() >= 60 << 20);
}

#[test]
fn large_extent_grows_region_to_fit() {
    let (memory, heap) = Memory::formatted();
    heap.reserve(&memory, 100 << 20, 0).unwrap().publish();
    let region_bytes = heap.stats().region_bytes;
    assert!((100 << 20..106 << 20).contains(&region_bytes), "{region_bytes}");
    assert!(!region_bytes.is_multiple_of(4 << 20), "{region_bytes}");
    // The following growths consist of full huge pages again.
    while heap.stats().region_bytes == region_bytes {
        heap.reserve(&memory, 500_000, 0).unwrap().publish();
    }
    assert!(heap.stats().region_bytes.is_multiple_of(4 << 20), "{}", heap.stats().region_bytes);
}

#[test]
fn growth_falls_back_to_least_step() {
    let (memory, heap) = Memory::formatted();
    memory.set_limit_bytes((4 << 20) + UNIT_BYTES);
    heap.reserve(&memory, (4 << 20) - UNIT_BYTES - 64, 0).unwrap().publish();
    assert_eq!(memory.len_bytes(), 4 << 20);
    heap.reserve(&memory, 0, 0).err().expect("a slab does not fit");
    assert_eq!(heap.stats().region_bytes, 4 << 20);
}

#[test]
fn full_medium_fails_and_slots_are_reused() {
    let (memory, heap) = Memory::formatted();
    memory.set_limit_bytes(8 << 20);
    let mut places = vec![];
    let error = loop {
        match heap.reserve(&memory, 1_000, places.len()) {
            Ok(reservation) => places.push(reservation.publish()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, HeapError::Medium(MediumError::Full { .. })));
    let slots_per_slab = (262_144 - 64) / Class::for_bytes(1_000).unwrap().bytes();
    assert_eq!(places.len() as u64, slots_per_slab * (((8 << 20) - UNIT_BYTES) / 262_144));
    for step in [1, 7, places.len() / 2, places.len()] {
        let mut freed: Vec<_> = places.drain(..step).collect();
        freed.iter().for_each(|place| heap.free(&memory, *place));
        let mut found: Vec<_> =
            (0..step).map(|i| heap.reserve(&memory, 1_000, i % LANE_COUNT).unwrap().publish()).collect();
        places.extend(&found);
        freed.sort_by_key(|place| place.offset);
        found.sort_by_key(|place| place.offset);
        assert_eq!(found.len(), freed.len());
        assert!(step == places.len() || found == freed);
    }
    assert!(heap.reserve(&memory, 1_000, 0).is_err());
}

/// A chunk of large slots and chunks of small ones fill the region. Items of a class in between use the slots of the
/// larger one, and use them again once they are free.
#[test]
fn full_region_uses_larger_classes() {
    let (memory, heap) = Memory::formatted();
    memory.set_limit_bytes((4 << 20) + UNIT_BYTES);
    let mut larger: Vec<_> = (0..2).map(|_| heap.reserve(&memory, 90_000, 0).unwrap().publish()).collect();
    while let Ok(reservation) = heap.reserve(&memory, 8_000, 0) {
        larger.push(reservation.publish());
    }
    let (slot_count, free_count) = ((2 << 20) / 90_112, (2 << 20) / 90_112 - 2);
    assert!(larger.len() > slot_count, "the rest of the region is full of small items");
    for lane in [0, 3] {
        let between = (0..).map_while(|_| heap.reserve(&memory, 60_000, lane).ok()).map(|place| place.publish());
        let between: Vec<_> = between.collect();
        assert_eq!(between.len(), free_count, "lane {lane}");
        assert!(between.iter().all(|place| place.kind == larger[0].kind));
        assert!(heap.reserve(&memory, 20_000, lane).is_err(), "slots of more than twice the size serve nothing");
        between.iter().for_each(|place| heap.free(&memory, *place));
        assert!(heap.reserve(&memory, 20_000, lane).is_err());
        assert!(heap.reserve(&memory, 4_000, lane).is_err(), "slots of up to 4 KiB have exactly their class");
    }
}

#[test]
fn oversized_item_is_too_long() {
    let (memory, heap) = Memory::formatted();
    for len_bytes in [1 << 40, u64::MAX] {
        let error = heap.reserve(&memory, len_bytes, 0).err();
        assert!(matches!(error, Some(HeapError::TooLong { len_bytes: found, .. }) if found == len_bytes));
    }
    let error = heap.reserve(&memory, (1 << 40) - (1 << 20), 0).err();
    assert!(matches!(error, Some(HeapError::Medium(MediumError::Full { .. } | MediumError::Limit { .. }))));
}

#[test]
fn preparation_ends_with_requested_space() {
    let (memory, heap) = Memory::formatted();
    let mut before_bytes = 0;
    while heap.prepare(&memory, 20 << 20) {
        let step_bytes = memory.populated_bytes() - before_bytes;
        assert!(step_bytes <= 2 << 20, "one step prepares {step_bytes} bytes");
        before_bytes += step_bytes;
    }
    assert!(heap.chunks().spare_bytes() >= 20 << 20);
    assert_eq!(memory.populated_bytes(), 20 << 20);
    assert!(!heap.prepare(&memory, 20 << 20));
    memory.set_limit_bytes(0);
    assert!(heap.prepare(&memory, 200 << 20), "pages that are there come first");
    while heap.prepare(&memory, 200 << 20) {}
    assert_eq!(memory.populated_bytes(), heap.stats().region_bytes - heap.supply().mark_bytes());
}

/// Plays a writer that uses `taken_units` for each step of the background, until the background has nothing left to
/// do.
fn ahead_of_a_writer(memory: &Memory, heap: &Heap<Host>, taken_units: u64) -> u64 {
    let mut left = if taken_units > 0 { 40 } else { 0 };
    loop {
        if left > 0 {
            heap.reserve_extent(memory, taken_units * UNIT_BYTES - 64).unwrap().publish();
            left -= 1;
        }
        if !heap.prepare(memory, heap.ahead_bytes()) {
            return heap.ahead_bytes();
        }
    }
}

#[test]
fn preparation_follows_write_rate() {
    let (memory, heap) = Memory::formatted();
    heap.reserve_extent(&memory, 64 << 20).unwrap().publish();
    let slow_bytes = ahead_of_a_writer(&memory, &heap, 0);
    assert_eq!(slow_bytes, heap.supply().footprint_bytes() / 32);
    let quick_bytes = ahead_of_a_writer(&memory, &heap, 16);
    assert!(quick_bytes >= 5 * slow_bytes && quick_bytes <= heap.supply().footprint_bytes() / 4, "{quick_bytes}");
    assert!(heap.chunks().spare_bytes() >= quick_bytes && memory.populated_bytes() >= quick_bytes);
    for _ in 0..8 {
        heap.reserve_extent(&memory, heap.ahead_bytes() / 2).unwrap().publish();
        ahead_of_a_writer(&memory, &heap, 0);
    }
    assert_eq!(heap.ahead_bytes(), heap.supply().footprint_bytes() / 32);
}

#[test]
fn exhausted_memory_fails_without_loss() {
    let memory = Memory::new(0);
    let host = Host::with_bytes(300_000);
    let heap = Heap::format(&memory, EngineNumber::HIKV, &crate::memory::PARAMETERS, host.clone()).unwrap();
    heap.region().finish_format(&memory).unwrap();
    let mut places = vec![];
    let error = loop {
        match heap.reserve(&memory, 16 * (1 + places.len() as u64 % 1_000), 0) {
            Ok(reservation) => places.push(reservation.publish()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, HeapError::NoDram { .. }));
    assert!(places.len() > 100);
    places.iter().for_each(|place| heap.free(&memory, *place));
    assert!(heap.reserve(&memory, 16, 0).is_ok());
    drop(heap);
    assert_eq!(host.left_bytes(), 300_000);
    assert!(Heap::open(&memory, EngineNumber::HIKV, Host::default()).is_ok());
}
