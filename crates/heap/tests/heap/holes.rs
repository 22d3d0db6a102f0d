//! Space above the mark, allocated while other threads return it.

use std::sync::Arc;

use heap::layout::UNIT_BYTES;
use pmem::{Bytes, Offset};

use crate::memory::Memory;

/// Between a chunk's allocation of space and its check, another thread allocates the same space and a third one
/// returns it: the possible holes begin where they began.
#[test]
fn chunk_has_space_after_concurrent_release() {
    let both = Arc::new(Memory::formatted());
    let others = Arc::clone(&both);
    both.0.after_back(move || {
        let (memory, heap) = &*others;
        assert!(heap.prepare(memory, 8 * UNIT_BYTES));
        let given_back = std::iter::from_fn(|| heap.chunks().discard_above_mark(memory)).sum::<u64>();
        assert!(given_back >= 8 * UNIT_BYTES, "{given_back} bytes");
    });
    let (memory, heap) = &*both;
    let place = heap.reserve(memory, 4 * UNIT_BYTES - 64, 0).unwrap().publish();
    assert!(!memory.has_hole(place.offset.span(4 * UNIT_BYTES - 64)));
    // Everything else may have holes: a thread that prepares it allocates its space again.
    while heap.prepare(memory, 16 * UNIT_BYTES) {}
    let mark = heap.stats().mark_bytes;
    assert!(memory.len_bytes() >= mark + 16 * UNIT_BYTES && !memory.has_hole(Offset(mark).span(16 * UNIT_BYTES)));
}

/// Space that was returned stays returned until a writer uses a free run; then the background fills the run ahead of
/// the writer. A chunk that is longer than the filled pieces finds their space.
#[test]
fn holes_are_filled_ahead_of_writers() {
    let (memory, heap) = Memory::formatted();
    let long_bytes = 300 * UNIT_BYTES - 64;
    let long = heap.reserve_extent(&memory, long_bytes).unwrap().publish();
    heap.reserve_extent(&memory, 100).unwrap().publish();
    heap.free(&memory, long);
    assert!(heap.discard_free_run(&memory, 0).is_some());
    let ahead_bytes = 100 * UNIT_BYTES;
    while heap.prepare(&memory, ahead_bytes) {}
    assert!(memory.has_hole(long.offset.plus(UNIT_BYTES).span(UNIT_BYTES)));
    let first = heap.reserve_extent(&memory, 4 * UNIT_BYTES - 64).unwrap().publish();
    assert_eq!(first.offset, long.offset);
    let populated_bytes = memory.populated_bytes();
    while heap.prepare(&memory, ahead_bytes) {}
    let filled = memory.populated_bytes() - populated_bytes;
    assert!((ahead_bytes..2 * ahead_bytes).contains(&filled), "{filled} bytes");
    let past_first = long.offset.0 - long.offset.0 % UNIT_BYTES + 4 * UNIT_BYTES;
    assert!(!memory.has_hole(Offset(past_first).span(ahead_bytes)));
    let region_bytes = heap.stats().region_bytes;
    let rest = heap.reserve_extent(&memory, 296 * UNIT_BYTES - 64).unwrap().publish();
    assert_eq!((rest.offset.0, heap.stats().region_bytes), (past_first + 64, region_bytes));
}
