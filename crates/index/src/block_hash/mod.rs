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
//! (`engines/rewo-hash/src/at_once.rs`): an item that no slot names has no effect, whenever it is written.
//!
//! # Reading
//! A reader takes no lock. It reads both counters, the meta word and slots of the first bucket, those of the
//! second, and both counters again, and checks whether a batch began or ended. After any change, the reader starts
//! again. If the slot found has a lock bit, or if the key is not found and a bucket has lock bits, the reader makes
//! that state durable before returning.
//!
//! # Lock order
//! a batch's turn; partition -> buckets. Buckets of one segment are locked in ascending order, those of several
//! segments in the order of their signatures. A write locks both of the key's buckets in one step, and holds
//! neither while it waits (`shared/locks.rs`). A thread that reads a segment is pinned.

mod batch;
mod broken;
pub mod canary;
mod check;
mod find;
mod image;
pub mod layout;
mod lookup;
mod moves;
mod open;
mod segment;
mod slot;
mod split;
mod sweep;
#[cfg(all(test, not(miri)))]
pub(crate) mod tests;
mod write;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::segmented::directory;
use crate::segmented::layout::Geometry;
use crate::shared::Pointer;

pub use batch::{Batch, Found, NoSpace, Turn};
pub use check::Damage;
pub use find::{Key, Target};
pub use lookup::{Candidate, Lookup};
pub use slot::{Content, Slot};
pub use sweep::{Cleared, Shown};
pub use write::{At, Buckets, Full, LockedLookup, Published};

use batch::Overlay;
use layout::{BUCKET_COUNT, SLOT_COUNT};
use segment::Segment;

type Root = directory::Root<Segment>;

/// The function that computes the signature of a key.
pub type Sign = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// The number of slots in a segment.
pub const SEGMENT_SLOT_COUNT: u64 = (BUCKET_COUNT * SLOT_COUNT) as u64;

/// The table. Its methods need a [`crate::segmented::Context`], and their callers are pinned.
pub struct BlockHash {
    geometry: Geometry,
    sign: Box<Sign>,
    root: Pointer<Root>,
    partitions: Box<[Mutex<()>]>,
    /// Held while a batch is carried out.
    turn: Mutex<()>,
    /// The batch that is being carried out, or null.
    overlay: Pointer<Overlay>,
    /// See [`BlockHash::take_crowding`].
    is_crowding: AtomicBool,
    move_count: AtomicU64,
    split_count: AtomicU64,
    chained_count: AtomicU64,
}

impl BlockHash {
    fn new(geometry: Geometry, sign: Box<Sign>, root: Box<Root>, overlay: *mut Overlay) -> BlockHash {
        BlockHash {
            geometry,
            sign,
            root: Pointer::new(Box::into_raw(root)),
            partitions: (0..geometry.partition_count()).map(|_| Mutex::new(())).collect(),
            turn: Mutex::new(()),
            overlay: Pointer::new(overlay),
            is_crowding: AtomicBool::new(true),
            move_count: AtomicU64::new(0),
            split_count: AtomicU64::new(0),
            chained_count: AtomicU64::new(0),
        }
    }

    /// Returns the signature of a key.
    #[inline(always)]
    pub fn signature(&self, key: &[u8]) -> u64 {
        (self.sign)(key)
    }

    /// Returns the signature of a slot's key, or `None` if the slot is damaged.
    fn signature_of(&self, slot: &Slot) -> Option<u64> {
        match slot.content() {
            Content::Whole { key, .. } => Some(self.signature(key)),
            Content::Item { signature, .. } => Some(signature),
            Content::Damaged => None,
        }
    }

    /// Returns the number of items. It is exact after every segment has been swept, if no thread writes during the
    /// call.
    pub fn len(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().map(Segment::item_count).sum()
    }

    /// Returns true if there is no item; see [`BlockHash::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of live segments, without chained ones.
    pub fn segment_count(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().count() as u64
    }

    /// Returns the numbers of segments that were split and that were chained since the store was opened.
    pub fn split_counts(&self) -> (u64, u64) {
        (self.split_count.load(Ordering::Relaxed), self.chained_count.load(Ordering::Relaxed))
    }

    /// Returns the number of items moved from one of their buckets to the other since the store was opened.
    pub fn move_count(&self) -> u64 {
        self.move_count.load(Ordering::Relaxed)
    }

    /// Returns the DRAM used by directories and segment tables.
    pub fn dram_bytes(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().dram_bytes()
    }

    /// Returns the current root, which stays valid while the caller is pinned.
    #[inline(always)]
    fn root(&self) -> &Root {
        // SAFETY: the root is never null; a replaced root is retired, and the caller is pinned.
        unsafe { &*self.root.load(Ordering::Acquire) }
    }

    #[inline(always)]
    fn segment(&self, signature: u64) -> &Segment {
        self.root().segment(self.geometry, signature)
    }

    /// Returns the batch that is being carried out. It stays valid while the caller is pinned.
    #[inline(always)]
    fn overlay(&self) -> Option<&Overlay> {
        // SAFETY: it is null or from a box; a removed overlay is retired, and the caller is pinned.
        unsafe { self.overlay.load(Ordering::Acquire).as_ref() }
    }
}

impl std::fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockHash").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

impl Drop for BlockHash {
    fn drop(&mut self) {
        // SAFETY: the pointers came from boxes, and no other thread uses the table any more.
        unsafe {
            drop(Box::from_raw(*self.root.get_mut()));
            let overlay = *self.overlay.get_mut();
            if !overlay.is_null() {
                drop(Box::from_raw(overlay));
            }
        }
    }
}
