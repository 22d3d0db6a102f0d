//! Damaged chunk headers and damaged places.

use heap::layout::{CHUNK_HEADER_BYTES, HIGH_WATER_MARK, UNIT_BYTES};
use heap::{Class, EngineNumber, Heap, HeapError, Place, PlaceKind};
use pmem::{Offset, seal, unseal};

use crate::memory::{Host, Memory};

/// Returns a region with a chunk of every kind, and the offsets of their headers.
fn varied() -> (Memory, Vec<u64>) {
    let (memory, heap) = Memory::formatted();
    let small = heap.reserve(&memory, 100, 0).unwrap().publish();
    let large = heap.reserve(&memory, 200_000, 0).unwrap().publish();
    let freed = heap.reserve(&memory, 300_000, 0).unwrap().publish();
    let segment = heap.reserve_segment(&memory).unwrap().publish();
    let extent = heap.reserve(&memory, 400_000, 0).unwrap().publish();
    heap.free(&memory, freed);
    let headers = [small, large, freed, segment, extent].map(|place| place.offset.0 / UNIT_BYTES * UNIT_BYTES);
    (memory, headers.to_vec())
}

#[test]
fn chunk_header_bit_flips_are_refused() {
    let (memory, headers) = varied();
    for at in headers {
        for bit in 0..64 {
            memory.flip(at * 8 + bit);
            let error = Heap::open(&memory, EngineNumber::HIKV, Host::default()).err();
            assert!(
                matches!(error, Some(HeapError::Damaged { offset, .. }) if offset == at),
                "header at {at:#x}, bit {bit}: {error:?}"
            );
            memory.flip(at * 8 + bit);
        }
    }
    assert!(Heap::open(&memory, EngineNumber::HIKV, Host::default()).is_ok());
}

#[test]
fn chunk_that_overruns_mark_is_refused() {
    let (memory, headers) = varied();
    let mark = unseal(memory.word_at(HIGH_WATER_MARK.0)).unwrap();
    memory.set_word(HIGH_WATER_MARK.0, seal(mark - 1));
    let error = Heap::open(&memory, EngineNumber::HIKV, Host::default()).err();
    let expected = HeapError::Damaged { offset: headers[4], what: "the chunk reaches beyond the high-water mark" };
    assert_eq!(error, Some(expected));
}

#[test]
fn refused_region_keeps_nothing() {
    let (memory, headers) = varied();
    let host = Host::default();
    let all_bytes = host.left_bytes();
    drop(Heap::open(&memory, EngineNumber::HIKV, host.clone()).unwrap());
    assert_eq!(host.left_bytes(), all_bytes);
    for bytes in (0..1 << 18).step_by(1_000) {
        let poor = Host::with_bytes(bytes);
        if let Err(error) = Heap::open(&memory, EngineNumber::HIKV, poor.clone()) {
            assert!(matches!(error, HeapError::NoDram { .. }));
        }
        assert_eq!(poor.left_bytes(), bytes);
    }
    memory.flip(headers[3] * 8);
    assert!(Heap::open(&memory, EngineNumber::HIKV, host.clone()).is_err());
    assert_eq!(host.left_bytes(), all_bytes);
}

/// Tries every grain of the region as every kind of place: exactly the places that were or could be handed out pass.
#[test]
fn only_slots_and_extents_are_places() {
    let (memory, headers) = varied();
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    let class = Class::for_bytes(100).unwrap();
    let is_slot = |at: u64| {
        let within = at.checked_sub(headers[0] + CHUNK_HEADER_BYTES);
        within.is_some_and(|bytes| bytes % class.bytes() == 0 && bytes / class.bytes() < (262_144 - 64) / class.bytes())
    };
    let is_segment =
        |at: u64| at > headers[3] && at < headers[3] + (1 << 20) && (at - headers[3]).is_multiple_of(16_384);
    for at in (0..memory.bytes(0, 8).len() as u64 + (5 << 20)).step_by(8) {
        let check = |kind| heap.table().check_place(Place { offset: Offset(at), kind });
        assert_eq!(check(PlaceKind::Slot(class)).is_ok(), is_slot(at), "slot at {at:#x}");
        assert_eq!(check(PlaceKind::Segment).is_ok(), is_segment(at), "segment at {at:#x}");
        assert_eq!(check(PlaceKind::Extent).is_ok(), at == headers[4] + CHUNK_HEADER_BYTES, "extent at {at:#x}");
    }
}

#[test]
fn offsets_beyond_the_region_are_no_places() {
    let (memory, heap) = Memory::formatted();
    for at in [u64::MAX, 1 << 40, (1 << 40) - 16, 1 << 30, heap.stats().region_bytes] {
        for kind in [PlaceKind::Extent, PlaceKind::Segment, PlaceKind::Slot(Class::for_bytes(0).unwrap())] {
            let place = Place { offset: Offset(at), kind };
            assert_eq!(heap.table().check_place(place).unwrap_err().offset, at);
            assert!(heap.sweep().mark_reached(place).is_err());
            heap.free(&memory, place);
        }
    }
}
