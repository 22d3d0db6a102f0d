//! Rewo-Hash's persistent table (paper, section III), made to grow: buckets of a block each, whose meta word commits every write
//! without a log, and whose slots hold small items whole.
//!
//! Signatures are cut into partitions, directories and segments as every hash index's (`crate::segmented`). A key has two buckets
//! in its segment.
//!
//! # Invariants
//! - A key is in one slot of one of its two buckets, or in two that are equal: *twins*, which a crash in a move may leave. The
//!   key's next writer, and the sweep, make one of them.
//! - A bucket's bytes change under its lock alone. The lock is volatile; *lock bits* are hints: what was published and may not be
//!   durable has its bit, from the publishing store on until known to be durable. A thread that acts on what has a bit makes it
//!   durable. A thread that clears bits holds the lock, and knows that everything is durable that the bucket's counter stands for:
//!   the counter was read under the lock too, and what is waited for asked after that.
//! - A slot whose bit is off holds anything. It is written only after the bucket's counter was raised.
//! - An insert leaves one free slot, so that an update finds one in its own bucket.
//!
//! # A write
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the item, if it is larger than a slot, is written and flushed | nothing |
//! | 2 both buckets are locked, the key is looked for, twins become one (the other's bit off, ordered) | the same |
//! | 3 counter + 1; a free slot of the bucket that has the old one, else of the emptier, is written and flushed; ordered | the same |
//! | 4 the meta word is published: bit on, old bit off, shape, lock bits; its commit is asked for | old or new |
//! | 5 memory: lock bits off, not flushed; the buckets are unlocked | the same |
//! | 6 waited for; a log's lock bits off, if nobody wrote to the bucket since | new |
//!
//! A removal has no step 1 and 3, but for the counter. A put with nothing in its way takes step 1 behind 2
//! (`engines/rewo-hash/src/at_once.rs`): an item that no slot names is nothing, whenever it is written.
//!
//! # Reading
//! Both counters; the first bucket's meta word and slots, the second's; both counters again, and whether a batch came or went: what
//! changed is read again. No reader waits for a lock. What is found with a lock bit, or not found in buckets that have any, is made
//! durable before the caller is told.
//!
//! # Lock order
//! a batch's turn; partition -> buckets: of one segment in ascending order, of several in the order of their signatures. A write takes both of
//! the key's buckets at once, and waits for them with neither (`shared/locks.rs`). Every thread that looks into a segment is pinned.

mod batch;
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

/// The signature of a key.
pub type Sign = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// Slots of a segment.
pub const SEGMENT_SLOT_COUNT: u64 = (BUCKET_COUNT * SLOT_COUNT) as u64;

/// The table. Methods take a [`crate::segmented::Context`]; callers are pinned.
pub struct BlockHash {
    geometry: Geometry,
    sign: Box<Sign>,
    root: Pointer<Root>,
    partitions: Box<[Mutex<()>]>,
    /// Held while a batch is carried out.
    turn: Mutex<()>,
    /// The batch that is carried out, or null.
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

    /// The signature of a key.
    #[inline(always)]
    pub fn signature(&self, key: &[u8]) -> u64 {
        (self.sign)(key)
    }

    /// The signature of a slot's key; `None` if the slot is damaged.
    fn signature_of(&self, slot: &Slot) -> Option<u64> {
        match slot.content() {
            Content::Whole { key, .. } => Some(self.signature(key)),
            Content::Item { signature, .. } => Some(signature),
            Content::Damaged => None,
        }
    }

    /// How many items there are. Exact once every segment has been swept, if nobody writes meanwhile.
    pub fn len(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().map(Segment::item_count).sum()
    }

    /// True if there is no item; see [`BlockHash::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many segments are live, chained ones not counted.
    pub fn segment_count(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().count() as u64
    }

    /// Segments split since open, and segments chained.
    pub fn split_counts(&self) -> (u64, u64) {
        (self.split_count.load(Ordering::Relaxed), self.chained_count.load(Ordering::Relaxed))
    }

    /// Items moved since open, from one of their buckets into the other.
    pub fn move_count(&self) -> u64 {
        self.move_count.load(Ordering::Relaxed)
    }

    /// Volatile memory of directories and segment tables.
    pub fn dram_bytes(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().dram_bytes()
    }

    /// The root as it is now; it stays valid while the caller is pinned.
    #[inline(always)]
    fn root(&self) -> &Root {
        // SAFETY: the root is never null; a replaced one is retired, and the caller is pinned.
        unsafe { &*self.root.load(Ordering::Acquire) }
    }

    #[inline(always)]
    fn segment(&self, signature: u64) -> &Segment {
        self.root().segment(self.geometry, signature)
    }

    /// The batch that is carried out; it stays valid while the caller is pinned.
    #[inline(always)]
    fn overlay(&self) -> Option<&Overlay> {
        // SAFETY: null, or from a box; one that was taken away is retired, and the caller is pinned.
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
        // SAFETY: the pointers came from boxes, and nobody else uses the table any more.
        unsafe {
            drop(Box::from_raw(*self.root.get_mut()));
            let overlay = *self.overlay.get_mut();
            if !overlay.is_null() {
                drop(Box::from_raw(overlay));
            }
        }
    }
}
