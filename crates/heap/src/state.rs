//! The state words of a region: each has its own line and is changed with one store.

use core::sync::atomic::Ordering;

use pmem::{Durability, Medium, Offset, seal, unseal};

use crate::HeapError;
use crate::layout::{FIRST_CHUNK_UNIT, GENERATION, HIGH_WATER_MARK, MADE_FOR, SNAPSHOT_EPOCH, UNIT_BYTES};

/// Stores and flushes a word. The caller orders it.
pub(crate) fn store_word<M: Medium>(medium: &M, at: Offset, word: u64) {
    medium.store(at, word, Ordering::Release);
    medium.flush(at.span(8));
}

/// Stores and flushes the high-water mark.
pub(crate) fn store_mark<M: Medium>(medium: &M, units: u32) {
    store_word(medium, HIGH_WATER_MARK, seal(u64::from(units)));
}

/// Stores and flushes the generation.
pub(crate) fn store_generation<M: Medium>(medium: &M, generation: u16) {
    store_word(medium, GENERATION, seal(u64::from(generation)));
}

/// Stores and flushes the snapshot epoch.
pub(crate) fn store_snapshot_epoch<M: Medium>(medium: &M, epoch: u32) {
    store_word(medium, SNAPSHOT_EPOCH, seal(u64::from(epoch)));
}

/// Stores and flushes the durability of the medium on which the region is made.
pub(crate) fn store_made_for<M: Medium>(medium: &M) {
    let level = match medium.durability() {
        Durability::Process => 1,
        Durability::Buffered => 2,
        Durability::Power => 3,
    };
    store_word(medium, MADE_FOR, seal(level));
}

/// Reads the durability for which the region was made, if recorded. Programs without this word left 0.
pub(crate) fn load_made_for<M: Medium>(medium: &M) -> Option<Durability> {
    match unseal(medium.load(MADE_FOR, Ordering::Acquire))? {
        1 => Some(Durability::Process),
        2 => Some(Durability::Buffered),
        3 => Some(Durability::Power),
        _ => None,
    }
}

/// Reads the high-water mark and checks that it is within the region.
pub(crate) fn load_mark<M: Medium>(medium: &M, region_bytes: u64) -> Result<u32, HeapError> {
    let damaged = |what| HeapError::Damaged { offset: HIGH_WATER_MARK.0, what };
    let units = load_sealed(medium, HIGH_WATER_MARK, "the high-water mark does not fit its check")?;
    if units < u64::from(FIRST_CHUNK_UNIT) {
        return Err(damaged("the high-water mark is before the first chunk"));
    }
    if units > region_bytes / UNIT_BYTES {
        return Err(damaged("the high-water mark is beyond the region's end"));
    }
    Ok(units as u32)
}

/// Reads the generation.
pub(crate) fn load_generation<M: Medium>(medium: &M) -> Result<u16, HeapError> {
    let generation = load_sealed(medium, GENERATION, "the generation does not fit its check")?;
    u16::try_from(generation)
        .map_err(|_| HeapError::Damaged { offset: GENERATION.0, what: "the generation is too large" })
}

/// Reads the snapshot epoch: 0 if no snapshot was ever taken, and in regions of programs without snapshots.
pub(crate) fn load_snapshot_epoch<M: Medium>(medium: &M) -> Result<u32, HeapError> {
    if medium.load(SNAPSHOT_EPOCH, Ordering::Acquire) == 0 {
        return Ok(0);
    }
    let epoch = load_sealed(medium, SNAPSHOT_EPOCH, "the snapshot epoch does not fit its check")?;
    u32::try_from(epoch)
        .map_err(|_| HeapError::Damaged { offset: SNAPSHOT_EPOCH.0, what: "the snapshot epoch is too large" })
}

pub(crate) fn load_sealed<M: Medium>(medium: &M, at: Offset, what: &'static str) -> Result<u64, HeapError> {
    unseal(medium.load(at, Ordering::Acquire)).ok_or(HeapError::Damaged { offset: at.0, what })
}
