//! A set of places of a region: one bit for each place at which an item or a segment can begin.

use pmem::Offset;

/// Everything in a region begins at a multiple of this.
const GRAIN_BYTES: u64 = 16;

/// Places that were met. It takes 1/128 of the region's length in DRAM, of which only used pages are touched.
#[derive(Debug)]
pub(crate) struct Places(Vec<u64>);

impl Places {
    /// Returns an empty set for a region of `region_bytes`.
    pub(crate) fn new(region_bytes: u64) -> Places {
        Places(vec![0; (region_bytes / GRAIN_BYTES).div_ceil(64) as usize])
    }

    /// Returns true if the place was met.
    pub(crate) fn has(&self, at: Offset) -> bool {
        let number = at.0 / GRAIN_BYTES;
        self.0.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a place; returns false if it was met before, or is not in the region.
    pub(crate) fn meet(&mut self, at: Offset) -> bool {
        let number = at.0 / GRAIN_BYTES;
        if !at.0.is_multiple_of(GRAIN_BYTES) {
            return false;
        }
        let Some(word) = self.0.get_mut((number / 64) as usize) else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
