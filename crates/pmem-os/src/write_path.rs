//! Past the cache or through it: which is the faster way to write an item here?
//!
//! Stores past the cache save reading the lines first, and real persistent memory likes their whole blocks; but where the
//! memory is DRAM some processors make the fence after them wait far longer than after a write-back (twice as long on one
//! generation measured, a tenth less on another). So persistent memory gets them always, and for DRAM both ways are
//! timed, once a process, on lines that no cache has, as a store's are (`docs/decisions/0009-write-an-item-once-and-fence-after-the-search.md`).

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pmem::{Durability, arch};

const LINE_BYTES: usize = pmem::LINE_BYTES as usize;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

/// An item of the usual size.
const ITEM: [u8; 272] = [0x5A; 272];
/// From one item to the next: lines are not shared.
const STRIDE_LINES: usize = 5;
const ITEM_COUNT: usize = 128;
/// The best of several batches counts, since others use the machine as well.
const BATCH_COUNT: usize = 8;

/// Whether items of a region with this durability are written past the cache.
pub(crate) fn is_past_cache(durability: Durability) -> bool {
    static FASTER: OnceLock<bool> = OnceLock::new();
    durability == Durability::Power || *FASTER.get_or_init(is_faster)
}

fn is_faster() -> bool {
    let mut scratch = vec![Line([0; LINE_BYTES]); ITEM_COUNT * STRIDE_LINES];
    let (mut past, mut through) = (Duration::MAX, Duration::MAX);
    for _ in 0..BATCH_COUNT {
        past = past.min(time(&mut scratch, |item, _| {
            // SAFETY: the item's lines are ours, and aligned.
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

/// How long it takes to `write` an item to each stride, where no cache has its lines. As a store does it: `write` is told which
/// lines come next.
fn time(scratch: &mut [Line], write: impl Fn(*mut u8, &[Line])) -> Duration {
    for line in &*scratch {
        // SAFETY: the line is ours.
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
            // SAFETY: the item's lines are ours.
            unsafe { arch::write_through(item, &[&ITEM]) };
        });
        assert_eq!(*reported.borrow(), [STRIDE_LINES, STRIDE_LINES, 0]);
        let bytes: Vec<u8> = scratch.iter().flat_map(|line| line.0).collect();
        let stride = || ITEM.into_iter().chain([0; STRIDE_LINES * LINE_BYTES - ITEM.len()]);
        assert!(bytes.into_iter().eq((0..3).flat_map(|_| stride())));
    }
}
