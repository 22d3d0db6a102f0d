//! Past the cache or through it: which is the faster way to write an item here?
//!
//! Stores past the cache save reading the lines first, and real persistent memory likes their whole blocks; but where the
//! memory is DRAM some processors make the fence after them wait far longer than after a write-back (twice as long on one
//! generation measured, a tenth less on another). So persistent memory gets them always, and for DRAM both ways are
//! timed, once a process (`docs/decisions/0009-the-write-path-is-timed.md`).

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pmem::{Durability, arch};

/// An item of the usual size.
const ITEM_BYTES: usize = 272;
/// From one item to the next: lines are not shared.
const STRIDE_BYTES: usize = 320;
/// Items of a batch, together larger than a first-level cache.
const ITEM_COUNT: usize = 128;
/// The best of several batches counts, since others use the machine as well.
const BATCH_COUNT: usize = 8;

/// Whether items of a region with this durability are written past the cache.
pub(crate) fn is_past_cache(durability: Durability) -> bool {
    static FASTER: OnceLock<bool> = OnceLock::new();
    durability == Durability::Power || *FASTER.get_or_init(is_faster)
}

fn is_faster() -> bool {
    let mut scratch = vec![0u128; ITEM_COUNT * STRIDE_BYTES / 16];
    let target = scratch.as_mut_ptr().cast::<u8>();
    let item = [0x5A; ITEM_BYTES];
    let time = |write: unsafe fn(*mut u8, &[&[u8]])| {
        let start = Instant::now();
        for i in 0..ITEM_COUNT {
            // SAFETY: each item lies in the scratch memory, which is aligned to 16 bytes and ours.
            unsafe { write(target.add(i * STRIDE_BYTES), &[&item]) };
            arch::fence();
        }
        start.elapsed()
    };
    let (mut past, mut through) = (Duration::MAX, Duration::MAX);
    for _ in 0..BATCH_COUNT {
        past = past.min(time(arch::stream));
        through = through.min(time(arch::write_through));
    }
    past < through
}
