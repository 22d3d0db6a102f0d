//! Placement on a medium that evicts pages: few reads for many items.

use std::collections::BTreeMap;

use heap::layout::UNIT_BYTES;
use heap::{Heap, Place};

use crate::memory::{Host, Memory, PAGE_BYTES};

/// The length of the slots of these tests, and of their chunks.
const SLOT_BYTES: u64 = 1024;
const CHUNK_BYTES: u64 = 4 * UNIT_BYTES;

/// A heap with `count` slots, and their places by chunk.
struct Filled {
    memory: Memory,
    heap: Heap<Host>,
    chunks: BTreeMap<u64, Vec<Place>>,
}

impl Filled {
    fn new() -> Filled {
        let (memory, heap) = Memory::formatted();
        memory.eviction().is_on = true;
        Filled { memory, heap, chunks: BTreeMap::new() }
    }

    /// Reserves a slot; returns its chunk.
    fn add(&mut self) -> u64 {
        let place = self.heap.reserve(&self.memory, SLOT_BYTES, 0).unwrap().publish();
        let chunk = (place.offset.0 - UNIT_BYTES) / CHUNK_BYTES;
        self.chunks.entry(chunk).or_default().push(place);
        chunk
    }

    /// Reserves slots until one is in another chunk; returns that chunk.
    fn add_to_next_chunk(&mut self) -> u64 {
        let first = self.add();
        std::iter::repeat_with(|| self.add()).find(|&chunk| chunk != first).unwrap()
    }

    /// Frees every `step`th slot of a chunk.
    fn free(&mut self, chunk: u64, step: usize) {
        let places = self.chunks.remove(&chunk).unwrap();
        let (freed, kept): (Vec<_>, Vec<_>) = places.into_iter().enumerate().partition(|(i, _)| i % step == 0);
        freed.iter().for_each(|(_, place)| self.heap.free(&self.memory, *place));
        self.chunks.insert(chunk, kept.into_iter().map(|(_, place)| place).collect());
    }

    /// Notes that a chunk is not in memory.
    fn evict(&self, chunk: u64) {
        let unit = 1 + chunk * CHUNK_BYTES / UNIT_BYTES;
        self.memory.eviction().absent.extend(unit..unit + CHUNK_BYTES / UNIT_BYTES);
    }
}

#[test]
fn resident_chunk_with_few_slots_is_taken() {
    let mut filled = Filled::new();
    let second = filled.add_to_next_chunk();
    filled.free(0, 4);
    assert_eq!((second, filled.add_to_next_chunk()), (1, 0));
}

#[test]
fn evicted_chunk_is_taken_when_half_free() {
    let mut filled = Filled::new();
    filled.add_to_next_chunk();
    filled.evict(0);
    filled.free(0, 4);
    assert_eq!(filled.add_to_next_chunk(), 2, "a quarter of chunk 0 is free");
    filled.free(0, 2);
    assert_eq!(filled.add_to_next_chunk(), 0, "more than half of it is free");
}

/// The list has many chunks that are not worth reading before one that is.
#[test]
fn wanted_chunk_is_found_behind_others() {
    const COUNT: u64 = 100;
    let mut filled = Filled::new();
    while filled.add_to_next_chunk() < COUNT {}
    filled.free(0, 1 + 1);
    for chunk in 1..COUNT {
        filled.evict(chunk);
        filled.free(chunk, 4);
    }
    let found = std::iter::repeat_with(|| filled.add_to_next_chunk()).take(COUNT as usize / 8).any(|chunk| chunk == 0);
    assert!(found, "a chunk in memory");
}

#[test]
fn full_region_uses_every_roomy_chunk() {
    let mut filled = Filled::new();
    filled.add_to_next_chunk();
    filled.evict(0);
    filled.free(0, 4);
    filled.memory.set_limit_bytes(0);
    let chunks = std::iter::from_fn(|| {
        let place = filled.heap.reserve(&filled.memory, SLOT_BYTES, 0).ok()?.publish();
        Some((place.offset.0 - UNIT_BYTES) / CHUNK_BYTES)
    });
    assert!(chunks.take(100_000).any(|chunk| chunk == 0));
}

/// Pages without a live slot are not read; all others keep their bytes.
#[test]
fn content_of_free_pages_is_given_up() {
    let mut filled = Filled::new();
    filled.add_to_next_chunk();
    let live = |filled: &Filled| filled.chunks.values().flatten().copied().collect::<Vec<_>>();
    for place in live(&filled) {
        filled.memory.set_bytes(place.offset.0, &place.offset.0.to_le_bytes().repeat(SLOT_BYTES as usize / 8));
    }
    filled.memory.eviction().overwritten.clear();
    // Half of the slots in a row, and each second one of the others.
    let places = filled.chunks.remove(&0).unwrap();
    let is_freed = |i: usize| i < places.len() / 2 || i.is_multiple_of(2);
    for (i, place) in places.iter().enumerate() {
        if is_freed(i) {
            filled.heap.free(&filled.memory, *place);
        } else {
            filled.chunks.entry(0).or_default().push(*place);
        }
    }
    let kept = live(&filled);
    filled.evict(0);
    while filled.add() != 0 {}
    while filled.chunks[&0].len() < places.len() {
        filled.add();
    }
    for place in kept {
        let bytes = filled.memory.bytes(place.offset.0, SLOT_BYTES);
        assert_eq!(bytes, place.offset.0.to_le_bytes().repeat(SLOT_BYTES as usize / 8), "{place:?}");
    }
    let whole_count = places.len() as u64 / 2 * SLOT_BYTES / PAGE_BYTES;
    let of_chunk = (UNIT_BYTES / PAGE_BYTES)..(UNIT_BYTES + CHUNK_BYTES) / PAGE_BYTES;
    let overwritten_count = filled.memory.eviction().overwritten.range(of_chunk).count() as u64;
    assert!((whole_count - 2..=whole_count).contains(&overwritten_count), "{overwritten_count} of {whole_count} pages");
}
