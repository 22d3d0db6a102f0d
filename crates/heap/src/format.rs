//! Creates a new region.
//!
//! # Steps
//! 1. The format mark becomes 'unfinished', order. *Crash from here to step 4:* the region counts as fresh and is
//!    formatted again.
//! 2. Everything else: the state words (a fresh medium may hold those of an older store), the zeroed engine area, and
//!    everything that the caller reserves and writes between [`Heap::format`](crate::Heap::format) and
//!    [`Region::finish_format`].
//! 3. Superblock copy A, order (of step 2 as well), copy B, order.
//! 4. The format mark becomes 0, order, commit. *Crash after it:* the region is complete.

use pmem::{LINE_BYTES, Level, Medium};

use crate::canary;
use crate::layout::{
    BATCH_WORD_COUNT, BATCH_WORDS, ENGINE_AREA, ENGINE_AREA_BYTES, FIRST_CHUNK_UNIT, FORMAT_MARK, FORMAT_UNFINISHED,
    IMAGE, PARTITION_COUNT_MAX, REGION_BYTES_MAX, SNAPSHOT_EPOCH, UNIT_BYTES,
};
use crate::region::{Found, Region};
use crate::superblock::{FEATURE_IMAGE, FEATURE_JOURNAL, FORMAT_MINOR, Superblock};
use crate::{EngineNumber, HeapError, header, state};

/// The parameters of a new region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// The store's identity; random.
    pub uuid: [u8; 16],
    /// The key of the index's hash; random, because clients choose the keys of items.
    pub hash_seed: u64,
    /// Parallel units of the engine, partitions or lanes: 1 to [`PARTITION_COUNT_MAX`].
    pub partition_count: u32,
    /// The initial length, rounded up to units. The region grows later as needed.
    pub region_bytes: u64,
}

impl Parameters {
    /// The default initial length: 4 MiB.
    pub const REGION_BYTES_DEFAULT: u64 = 4 << 20;

    fn superblock(&self, engine: EngineNumber, is_journaled: bool) -> Result<Superblock, HeapError> {
        if self.partition_count == 0 || self.partition_count > PARTITION_COUNT_MAX {
            return Err(HeapError::Parameter { what: "the partition count", value: self.partition_count.into() });
        }
        if self.region_bytes > REGION_BYTES_MAX {
            return Err(HeapError::Parameter { what: "the region's length", value: self.region_bytes });
        }
        Ok(Superblock {
            format_minor: FORMAT_MINOR,
            features: if is_journaled { FEATURE_IMAGE | FEATURE_JOURNAL } else { FEATURE_IMAGE },
            engine,
            uuid: self.uuid,
            hash_seed: self.hash_seed,
            partition_count: self.partition_count,
            region_bytes: self.region_bytes.next_multiple_of(UNIT_BYTES).max(UNIT_BYTES),
            sequence: 1,
        })
    }
}

impl Region {
    /// Takes steps 1 and 2.
    pub(crate) fn format<M: Medium>(
        medium: &M,
        engine: EngineNumber,
        parameters: &Parameters,
    ) -> Result<Region, HeapError> {
        let superblock = parameters.superblock(engine, medium.is_journaled())?;
        if Region::probe(medium)? != Found::Fresh {
            return Err(HeapError::AlreadyFormatted);
        }
        medium.grow(superblock.region_bytes)?;
        state::store_word(medium, FORMAT_MARK, FORMAT_UNFINISHED);
        medium.order();
        state::store_mark(medium, FIRST_CHUNK_UNIT);
        state::store_generation(medium, 0);
        state::store_word(medium, IMAGE, 0);
        state::store_word(medium, SNAPSHOT_EPOCH, 0);
        header::zero(medium, BATCH_WORDS, BATCH_WORD_COUNT as u64 * LINE_BYTES);
        // A journal's base provides any durability that its log is asked for, so it records no level.
        if !medium.is_journaled() {
            state::store_made_for(medium);
        }
        header::zero(medium, ENGINE_AREA, ENGINE_AREA_BYTES);
        Ok(Region::new(superblock, 0))
    }

    /// Makes a new region valid, and durable together with everything flushed into it so far: steps 3 and 4.
    ///
    /// # Errors
    /// [`HeapError::Medium`] if the medium fails; the region then still counts as fresh.
    pub fn finish_format<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        if medium.breaks(canary::FORMAT_MARK_EARLY) {
            clear_format_mark(medium);
        }
        self.store_superblock(medium);
        clear_format_mark(medium);
        medium.wait(medium.commit(Level::default()))?;
        Ok(())
    }
}

fn clear_format_mark<M: Medium>(medium: &M) {
    state::store_word(medium, FORMAT_MARK, 0);
    medium.order();
}
