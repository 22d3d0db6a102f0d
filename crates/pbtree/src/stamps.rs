//! Stamps: unique numbers of values, so that a reader of a value can check later whether the key still has the same
//! one.
//!
//! The region counts the blocks of stamps that were taken. A lane takes a block and numbers values from the block.
//! The count is flushed when a block is taken, and is durable before a value with such a stamp is, because every
//! write orders in between. A crash wastes the rest of a block.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::HeapError;
use pmem::{Dram, DramBox, Medium, seal, unseal};
use undo_log::layout::LANE_COUNT_MAX;

use crate::Error;
use crate::canary;
use crate::layout::STAMP_BLOCKS;

const BLOCK_BITS: u32 = 16;
const BLOCK: u64 = 1 << BLOCK_BITS;

/// The next stamp of each lane; at a block's start the lane has none.
pub(crate) struct Stamps([AtomicU64; LANE_COUNT_MAX]);

impl Stamps {
    /// Creates lanes without stamps.
    pub(crate) fn new<D: Dram>(dram: D) -> Result<DramBox<Stamps, D>, HeapError> {
        // SAFETY: zeros are lanes without stamps.
        unsafe { DramBox::zeroed(dram) }.ok_or(HeapError::NoDram { wanted_bytes: size_of::<Stamps>() })
    }

    /// Returns a stamp for the holder of `lane`.
    pub(crate) fn next<M: Medium>(&self, medium: &M, lane: usize) -> Result<u64, Error> {
        let next = self.0[lane].load(Ordering::Relaxed);
        let stamp = if next.is_multiple_of(BLOCK) { take_block(medium)? * BLOCK } else { next };
        self.0[lane].store(stamp + 1, Ordering::Relaxed);
        Ok(stamp)
    }
}

/// Returns the number of a block that no other lane takes, from 1 on.
#[cold]
fn take_block<M: Medium>(medium: &M) -> Result<u64, Error> {
    let mut word = medium.load(STAMP_BLOCKS, Ordering::Acquire);
    loop {
        let count = unseal(word).ok_or(Error::damaged(STAMP_BLOCKS, "the count of stamps is damaged"))?;
        match medium.compare_exchange(STAMP_BLOCKS, word, seal(count + 1)) {
            Err(found) => word = found,
            Ok(_) => {
                if !medium.breaks(canary::STAMP_BLOCK_NOT_FLUSHED) {
                    medium.flush(STAMP_BLOCKS.span(8));
                }
                return Ok(count + 1);
            }
        }
    }
}
