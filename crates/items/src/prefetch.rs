//! Prefetches items before they are read.

use pmem::{LINE_BYTES, Medium, Offset};

/// The most bytes of an item that are prefetched before its header has been read.
const PREFETCHED_BYTES_MAX: u64 = 1024;

/// The most bytes of an item that are requested from the disk.
const REQUESTED_BYTES_MAX: u64 = 64 << 10;

/// Lines behind an item's first line that are prefetched one by one: those of the usual item, with a key and value of
/// at most 304 bytes together.
const STEP_LINE_COUNT: u64 = 4;

/// Prefetches all lines of a small item at `at` whose slot has `room_bytes`, or only the first line if its size is
/// unknown. Any offset is allowed: a wrong one costs only time.
#[inline(always)]
pub fn prefetch<M: Medium>(medium: &M, at: Offset, capacity_bytes: Option<u64>) {
    medium.prefetch_line(at);
    let Some(len_bytes) = capacity_bytes else { return };
    // The item may touch one line more than its length needs. Each step is three instructions; a loop takes more.
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

/// Prefetches an item that is read after others that are prefetched as well: if it is not in memory, it is read from
/// the disk together with them.
#[inline(always)]
pub fn request<M: Medium>(medium: &M, at: Offset, capacity_bytes: Option<u64>) {
    if medium.evicts() {
        medium.request(at.span(capacity_bytes.unwrap_or(LINE_BYTES).min(REQUESTED_BYTES_MAX)));
    } else {
        prefetch(medium, at, capacity_bytes);
    }
}

/// The number of items prefetched in a row: about the number of page translations that a core has in flight.
const WINDOW: usize = 8;

/// Iterates over `things` for a caller that reads the memory each refers to; `ask` prefetches that memory. Prefetches
/// are issued one window ahead, a window in a row. A prefetch instruction waits for the page's translation and delays
/// later instructions, so a row of them waits only once
/// (`docs/decisions/0044-answer-most-operations-from-the-home-line.md`).
#[inline(always)]
pub fn prefetch_ahead<'t, T>(things: &'t [T], ask: impl Fn(&T) + 't) -> impl Iterator<Item = &'t T> + 't {
    let ask_for = move |first: usize| things.iter().skip(first).take(WINDOW).for_each(&ask);
    ask_for(0);
    things.iter().enumerate().map(move |(number, thing)| {
        if number.is_multiple_of(WINDOW) {
            ask_for(number + WINDOW);
        }
        thing
    })
}

#[inline(never)]
fn prefetch_further<M: Medium>(medium: &M, at: Offset, len_bytes: u64) {
    for line in STEP_LINE_COUNT + 1..len_bytes.div_ceil(LINE_BYTES) {
        medium.prefetch_line(at.plus(line * LINE_BYTES));
    }
}
