//! Asking the cache for items by their positions.

use pmem::{LINE_BYTES, Medium, Offset};

use crate::Position;

/// So much of an item is asked for before its header has told how long it is.
const PREFETCHED_BYTES_MAX: u64 = 1024;

/// Lines behind an item's first that are asked for one by one: those of the usual item, whose key and value have 304 bytes at the most.
const STEP_LINE_COUNT: u64 = 4;

/// Asks the cache for all lines of a small item: its length is known from the size class long before its header arrives.
#[inline(always)]
pub fn prefetch_item<M: Medium>(medium: &M, position: Position) {
    let at = position.offset();
    medium.prefetch_line(at);
    let Some(len_bytes) = position.slot_bytes() else { return };
    // Its last line may be one more than its length has lines. Each step is three instructions: a loop takes more.
    medium.prefetch_line(Offset(at.0.wrapping_add(len_bytes).wrapping_sub(1)));
    for line in 1..=STEP_LINE_COUNT {
        if len_bytes <= line * LINE_BYTES {
            return;
        }
        medium.prefetch_line(at.plus(line * LINE_BYTES));
    }
    if len_bytes > (STEP_LINE_COUNT + 1) * LINE_BYTES {
        prefetch_further(medium, at, len_bytes.min(PREFETCHED_BYTES_MAX));
    }
}

#[inline(never)]
fn prefetch_further<M: Medium>(medium: &M, at: Offset, len_bytes: u64) {
    for line in STEP_LINE_COUNT + 1..len_bytes.div_ceil(LINE_BYTES) {
        medium.prefetch_line(at.plus(line * LINE_BYTES));
    }
}
