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
