//! The faster way to write an item on this machine: with non-temporal stores, or through the cache.
//!
//! Non-temporal stores need not read the lines first, and real persistent memory prefers complete blocks. But if
//! the memory is DRAM, some processors make the fence after them wait far longer than after a write-back (2x as
//! long on one generation measured, 10 % less on another). So persistent memory always gets non-temporal stores.
//! For DRAM both ways are timed, once per process, on lines that no cache holds, like a store's
//! (`docs/decisions/0001-commit-an-entry-with-one-8-byte-store.md`).

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pmem::{Durability, arch};

const LINE_BYTES: usize = pmem::LINE_BYTES as usize;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

/// An item of the usual size.
const ITEM: [u8; 272] = [0x5A; 272];
/// Distance between two items: they share no lines.
const STRIDE_LINES: usize = 5;
const ITEM_COUNT: usize = 128;
/// The best of several batches counts, because other programs also use the machine.
const BATCH_COUNT: usize = 8;

/// Returns true if items of a region with this durability are written with non-temporal stores.
pub(crate) fn is_past_cache(durability: Durability) -> bool {
    static FASTER: OnceLock<bool> = OnceLock::new();
    durability == Durability::Power || *FASTER.get_or_init(is_faster)
}

fn is_faster() -> bool {
    let mut scratch = vec![Line([0; LINE_BYTES]); ITEM_COUNT * STRIDE_LINES];
    let (mut past, mut through) = (Duration::MAX, Duration::MAX);
    for _ in 0..BATCH_COUNT {
        past = past.min(time(&mut scratch, |item, _| {
            // SAFETY: the item's lines belong to this function, and are aligned.
            unsafe { arch::stream(item, &[&ITEM]) }
        }));
        through = through.min(time(&mut scratch, |item, next| {
            next.iter().for_each(|line| arch::prefetch(line.0.as_ptr()));
            // SAFETY: as above.
            unsafe { arch::write_through(item, &[&ITEM]) }
        }));
    }
    past < through
}

/// Returns the time to `write` an item to each stride, while no cache holds its lines. As in a store, `write` gets
/// the lines that come next.
fn time(scratch: &mut [Line], write: impl Fn(*mut u8, &[Line])) -> Duration {
    for line in &*scratch {
        // SAFETY: the line belongs to the caller's slice.
        unsafe { arch::evict(line.0.as_ptr()) };
    }
    arch::fence();
    let start = Instant::now();
    let mut rest = scratch;
    while !rest.is_empty() {
        let (item, next) = rest.split_at_mut(STRIDE_LINES);
        write(item.as_mut_ptr().cast(), next.get(..STRIDE_LINES).unwrap_or_default());
        arch::fence();
        rest = next;
    }
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_written_to_each_stride() {
        let mut scratch = vec![Line([0; LINE_BYTES]); 3 * STRIDE_LINES];
        let reported = std::cell::RefCell::new(Vec::new());
        time(&mut scratch, |item, next| {
            reported.borrow_mut().push(next.len());
            // SAFETY: the item's lines belong to this test.
            unsafe { arch::write_through(item, &[&ITEM]) };
        });
        assert_eq!(*reported.borrow(), [STRIDE_LINES, STRIDE_LINES, 0]);
        let bytes: Vec<u8> = scratch.iter().flat_map(|line| line.0).collect();
        let stride = || ITEM.into_iter().chain([0; STRIDE_LINES * LINE_BYTES - ITEM.len()]);
        assert!(bytes.into_iter().eq((0..3).flat_map(|_| stride())));
    }
}
