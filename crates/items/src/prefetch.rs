//! Asking the cache for items before they are read.

use pmem::{LINE_BYTES, Medium, Offset};

/// So much of an item is asked for before its header has told how long it is.
const PREFETCHED_BYTES_MAX: u64 = 1024;

/// Lines behind an item's first that are asked for one by one: those of the usual item, whose key and value have 304 bytes at the most.
const STEP_LINE_COUNT: u64 = 4;

/// Asks the cache for all lines of a small item at `at`, whose room has so many bytes; of an item whose room does not tell, for the first one. Any
/// offset will do: a wrong one costs time only.
#[inline(always)]
pub fn prefetch<M: Medium>(medium: &M, at: Offset, capacity_bytes: Option<u64>) {
    medium.prefetch_line(at);
    let Some(len_bytes) = capacity_bytes else { return };
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

/// Things that are asked for in a row: about as many as a core has translations under way.
const WINDOW: usize = 8;

/// These things, for a caller who reads what each names before the next is taken; `ask` asks the cache for what one names. A window is asked for in a row,
/// one window before its turn. An instruction that asks for a line waits for the page's translation, and what comes long after waits, too: a row of
/// them waits once (`docs/decisions/0081-prefetch-a-window-of-items-in-one-loop.md`).
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
