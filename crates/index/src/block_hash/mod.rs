//! Rewo-Hash's persistent table (paper, section III), extended so that it can grow.
//!
//! A bucket is one 256-byte block. The meta word of a bucket commits every write without a log. The slots hold
//! small items inline, and the positions of larger items. Partitions, directories and segments are those of every
//! hash index (`crate::segmented`). A key has two buckets in its segment.
//!
//! # Invariants
//! - A key is in one slot of one of its two buckets. Exception: a crash during a move may leave two equal slots,
//!   *duplicates*. The next writer of the key, or the sweep, removes one of them.
//! - The bytes of a bucket change only under the bucket's lock, which is volatile.
//! - *Lock bits* in the meta word are hints, not locks. Any published slot that may not be durable has the lock bit
//!   set, from the publishing store until known to be durable. A thread that acts on a slot with a lock bit makes
//!   it durable first.
//! - A thread that clears lock bits holds the lock, and knows that everything is durable up to the value of the
//!   bucket's counter. The counter was read under the lock, and the awaited commit was requested after that.
//! - A slot whose bitmap bit is off may hold any bytes. Such a slot is written only after the bucket's counter was
//!   raised.
//! - An insert leaves one slot free, so an update always finds a free slot in its own bucket.
//!
//! # A write
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the item, if it is larger than a slot, is written and flushed | nothing |
//! | 2a both buckets are locked, the key is looked up | the same |
//! | 2b duplicates become one: the other's bit off, ordered | the same |
//! | 3a counter + 1: of the old slot's bucket; for an insert, of the emptier bucket | the same |
//! | 3b a free slot of that bucket is written and flushed; ordered | the same |
//! | 4 the meta word is published: bit on, old bit off, shape, lock bits; commit requested | old or new |
//! | 5 memory: lock bits off, not flushed; the buckets are unlocked | the same |
//! | 6 waited for; a log's lock bits off, if the bucket's counter is unchanged | new |
//!
//! A removal skips steps 1 and 3b. A put without obstacles runs step 1 after step 2
//! (`engines/rewo-hash/src/writer/at_once.rs`): an item that no slot names has no effect, whenever it is written.
//!
//! # Reading
//! A reader takes no lock. It reads both counters, the meta word and slots of the first bucket, those of the
//! second, and both counters again, and checks whether a batch began or ended. After any change, the reader starts
//! again. If the slot found has a lock bit, or if the key is not found and a bucket has lock bits, the reader makes
//! that state durable before returning.
//!
//! # Modules
//! The table is its segments, the signatures of its keys, the batch that is being carried out, the moves and the
//! splits. Each of these types owns its fields. Every module uses only those after it: `sweep` (walks), `find`,
//! `write` -> `moves`, `batch`, `split` -> `buckets` -> `lookup` -> `read`, `check` -> `batch/overlay` -> `segment`,
//! `crowding` -> `image` -> `slot` -> `layout`. `broken` has the faults of canaries, for `moves` and `buckets`.
//!
//! # Lock order
//! a batch's turn; partition -> buckets. Buckets of one segment are locked in ascending order, those of several
//! segments in the order of their signatures. A write locks both of the key's buckets in one step, and holds
//! neither while it waits (`shared/locks.rs`). A thread that reads a segment is pinned.

mod batch;
mod broken;
mod buckets;
pub mod canary;
mod check;
mod crowding;
mod find;
mod image;
pub mod layout;
mod lookup;
mod moves;
mod read;
mod segment;
mod slot;
mod split;
mod sweep;
#[cfg(all(test, not(miri)))]
pub(crate) mod tests;
mod write;

use heap::{Heap, HeapError};
use pmem::{Dram, Medium};

use crate::segmented::layout::Geometry;
use crate::segmented::open::{finish_splits, live_segments, root_of};
use crate::segmented::segments::Segments;
use crate::segmented::{Context, directory};

pub use batch::{Batch, Found, NoSpace, Turn};
pub use buckets::{At, Buckets, Full, LockedLookup, Published};
pub use check::Damage;
pub use find::Candidate;
pub use lookup::Lookup;
pub use slot::{Content, Key, Sign, Slot};
pub use sweep::{Cleared, Shown};
pub use write::Target;

use batch::Batches;
use crowding::Moves;
use layout::{BUCKET_COUNT, SLOT_COUNT};
use segment::Segment;
use slot::Signer;
use split::Splits;

type Root = directory::Root<Segment>;

/// The number of slots in a segment.
pub const SEGMENT_SLOT_COUNT: u64 = (BUCKET_COUNT * SLOT_COUNT) as u64;

/// The table. Its methods need a [`crate::segmented::Context`], and their callers are pinned.
pub struct BlockHash {
    segments: Segments<Segment>,
    signer: Signer,
    batches: Batches,
    moves: Moves,
    splits: Splits,
}

impl BlockHash {
    /// Writes and flushes the first segments of a new store. They become durable when the format of the allocator
    /// finishes, which is also what makes the region a store. `sign` computes the signatures of keys; it must be
    /// the same whenever the store is opened again.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn format<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        geometry: Geometry,
        sign: Box<Sign>,
    ) -> Result<BlockHash, HeapError> {
        let limbo = epoch::Limbo::default();
        let root = sweep::empty_root(Context { medium, heap, limbo: &limbo }, geometry, heap.region().generation())?;
        Ok(BlockHash::of(Segments::new(geometry, root), sign, Batches::none()))
    }

    /// Opens the table of a store:
    ///
    /// 1. Finishes the splits that a crash interrupted (`crate::segmented`).
    /// 2. Carries out a committed batch again (`batch`).
    /// 3. Finds the live segments, and builds the directories (`crate::segmented`).
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a header is damaged, or if the live segments do not cover every prefix exactly
    /// once.
    pub fn open<M: Medium, D: Dram>(
        cx: Context<'_, M, D>,
        geometry: Geometry,
        sign: Box<Sign>,
    ) -> Result<BlockHash, HeapError> {
        let splits = finish_splits(cx, geometry)?;
        let batches = Batches::recover(cx.medium)?;
        let table = |(offset, header)| {
            let segment = Segment::new(offset, header, !cx.medium.is_writable());
            segment.link_chain(cx.medium).map(|()| segment)
        };
        let live = live_segments(cx, geometry, &splits)?.into_iter();
        let tables = live.map(|segments| segments.into_iter().map(table).collect::<Result<Vec<_>, _>>());
        let root = root_of(tables.collect::<Result<_, _>>()?, geometry)?;
        Ok(BlockHash::of(Segments::new(geometry, root), sign, batches))
    }

    fn of(segments: Segments<Segment>, sign: Box<Sign>, batches: Batches) -> BlockHash {
        BlockHash { segments, signer: Signer::new(sign), batches, moves: Moves::default(), splits: Splits::default() }
    }

    /// Returns the signature of a key.
    #[inline(always)]
    pub fn signature(&self, key: &[u8]) -> u64 {
        self.signer.signature(key)
    }

    /// Returns the number of items. It is exact after every segment has been swept, if no thread writes during the
    /// call.
    pub fn len(&self) -> u64 {
        let _pin = epoch::pin();
        // While threads write, a segment may have counted a delete and not yet the insert before it.
        let sum = self.segments.root().segments().map(Segment::item_count).fold(0, u64::wrapping_add);
        sum.cast_signed().max(0).cast_unsigned()
    }

    /// Returns true if a walk that has returned this cursor has visited the segment of `signature`.
    pub fn has_passed(&self, cursor: crate::segmented::Cursor, signature: u64) -> bool {
        self.segments.has_passed(cursor, signature)
    }

    /// Returns true if there is no item; see [`BlockHash::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of live segments, without chained ones.
    pub fn segment_count(&self) -> u64 {
        self.segments.count()
    }

    /// Returns the numbers of segments that were split and that were chained since the store was opened.
    pub fn split_counts(&self) -> (u64, u64) {
        self.splits.counts()
    }

    /// Returns the number of items moved from one of their buckets to the other since the store was opened.
    pub fn move_count(&self) -> u64 {
        self.moves.count()
    }

    /// Returns true if [`BlockHash::pre_evict`] may find new work: since the last call, a bucket has lost its space
    /// for an insert, or has become light.
    pub fn take_crowding(&self) -> bool {
        self.moves.take_crowding()
    }

    /// Returns the DRAM used by directories and segment tables.
    pub fn dram_bytes(&self) -> u64 {
        self.segments.dram_bytes()
    }

    /// Waits for the turn to carry out a batch.
    pub fn batch_turn(&self) -> Turn<'_> {
        self.batches.turn()
    }

    /// Carries out step 2 of a batch: locks the buckets of all these signatures, which are ascending. The caller has
    /// the turn.
    pub fn lock_batch<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        turn: &Turn<'_>,
        signatures: &[u64],
    ) -> Batch<'a, M, D> {
        Batch::lock((&self.segments, &self.batches, &self.moves), cx, turn, signatures)
    }

    /// Makes space for a batch of these signatures, which are ascending, in the segments that lacked it. The caller
    /// holds no bucket.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn split_for_batch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        NoSpace(full): NoSpace,
        signatures: &[u64],
    ) -> Result<(), HeapError> {
        full.into_iter().try_for_each(|(signature, full)| self.split_for(cx, signature, full, signatures))
    }

    /// Makes space for `signature` in the segment that was full, if that is still its segment. The caller holds no
    /// bucket.
    ///
    /// # Errors
    /// Returns the allocator's error, or damage to a slot; then nothing has changed.
    pub fn split<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        signature: u64,
        full: Full,
    ) -> Result<(), HeapError> {
        self.split_for(cx, signature, full, &[])
    }

    /// Like [`BlockHash::split`], if `others` are about to be inserted also. These signatures are ascending. They
    /// count in the decision whether a split frees space.
    fn split_for<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        signature: u64,
        full: Full,
        others: &[u64],
    ) -> Result<(), HeapError> {
        let wanted = split::Wanted { segments: &self.segments, signer: &self.signer, signature, others };
        self.splits.make_space(cx, &wanted, full, &self.moves)
    }
}

impl std::fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockHash").field("geometry", &self.segments.geometry()).finish_non_exhaustive()
    }
}
