//! The HiKV engine (Xia et al., USENIX ATC 2017): a hash index in persistent memory serves single keys, and, where order
//! is kept, a B+tree in volatile memory serves ranges ([`order`]).
//!
//! A write costs two persists, the item's and the entry's; a delete one (paper, section 3.4.2). The commit point is the
//! entry's position word; see `index::partitioned_hash::ops` for its steps and `docs/durability.md` for what a crash can
//! and cannot take away.
//!
//! # Write order
//! 1 reserve room; 2 write the item, flush; 3 lock the bucket, look for the key, take a ticket of the order, keep what live
//! snapshots see (`snapshots`); 4 order, publish, commit, unlock; 5 wait, take the FRESH mark away; 6 fill the ticket: the
//! item that was replaced is retired. A crash before 4 leaves garbage that nothing reaches, which is free space. Several keys
//! as one step: `batch`.
//!
//! # Lock order
//! background, compaction -> partition -> pairs -> stash -> allocator; the order's build -> known image -> allocator.
//! Operations are pinned throughout; whoever waits for readers (`clear`) is not.

mod background;
mod batch;
mod check;
mod compact;
mod conditional;
mod expired;
mod expiry;
mod garbage;
pub mod image;
mod item;
mod multi_put;
mod open;
mod ops;
pub mod order;
mod publish;
mod read;
mod reaper;
pub mod salvage;
mod snapshots;
#[cfg(test)]
mod tests;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use epoch::Limbo;
use heap::Heap;
use index::PartitionedHash;
use index::partitioned_hash::{Cleared, Context, Garbage, SplitStats, layout::SEGMENT_ENTRY_COUNT};
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use crate::{Clock, EngineStats, Hasher, Verify};
use background::Background;
use compact::Compaction;
use expired::ExpiredHook;
use garbage::HeldUp;
use image::CleanImage;
use order::{HashOnly, Order};
use reaper::Reaper;
use snapshots::Snapshots;

pub use heap::Parameters;

/// HiKV over a medium.
pub struct HiKv<M, D: Dram, O = HashOnly> {
    medium: M,
    heap: Heap<D>,
    index: PartitionedHash,
    hasher: Hasher,
    limbo: Limbo<Garbage>,
    garbage: HeldUp,
    cleared: Limbo<Cleared>,
    background: Mutex<Background>,
    /// Every entry is counted, and free space is known unless the store is damaged or read-only.
    swept: AtomicBool,
    image: CleanImage,
    snapshots: Snapshots,
    clock: Clock,
    reaper: Reaper,
    expired_hook: ExpiredHook,
    compaction: Compaction,
    verify: Verify,
    order: O,
}

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    #[inline(always)]
    fn cx(&self) -> Context<'_, M, D> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The store's identity, from its superblock.
    pub fn uuid(&self) -> [u8; 16] {
        self.heap.superblock().uuid
    }

    fn gather_stats(&self) -> EngineStats {
        let (space, splits) = (self.heap.stats(), self.index.split_stats());
        let snapshots = self.snapshots.stats();
        EngineStats {
            items: self.index.len(),
            region_bytes: space.region_bytes,
            used_bytes: space.mark_bytes,
            live_bytes: space.live_bytes,
            free_bytes: space.free_bytes,
            dram_bytes: space.dram_bytes + self.index.dram_bytes() + snapshots.dram_bytes,
            swept: self.swept.load(Ordering::Acquire),
            garbage_count: self.limbo.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.garbage.count(),
            segment_count: self.index.segment_count(),
            split_count: splits.split_count,
            split_load: split_load(splits),
            chained_count: splits.chained_count,
            reaped_count: self.reaper.reaped_count(),
            taken_bytes: self.taken_bytes(),
            compaction: self.compaction.stats(),
            counts: self.medium.counts(),
            order: self.order.stats(),
            snapshots,
        }
    }
}

fn split_load(splits: SplitStats) -> f64 {
    let room = splits.split_count * SEGMENT_ENTRY_COUNT;
    if room == 0 { 0.0 } else { splits.split_entry_count as f64 / room as f64 }
}
