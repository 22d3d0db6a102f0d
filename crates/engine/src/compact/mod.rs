//! Compaction: chunks of which little is in use are emptied, and the space of free runs goes back to the file system
//! (`docs/decisions/0017-compaction.md`, `0108-compaction-of-every-engine.md`). By request, or in the background once too much space is taken
//! for what is live. An engine says how it moves an item ([`Compacts`]); when, and out of which chunks, is decided here.
//!
//! | step of a move | a crash after it leaves |
//! |---|---|
//! | 1 an item in a chunk that is evacuated is found, read, and its checksum compared | nothing |
//! | 2 the item is written to a slot elsewhere, and flushed | free space |
//! | 3 as an update, if the key still has the same item | the item, here or there |
//! | 4 the old item is let go of, and freed when no reader is left | the same; its space is free after opening |
//! | 5 the chunk, once empty, becomes a free run (`heap`: chunks) | the chunk, which nothing reaches, or the run |
//! | 6 the run's space is given back (`heap`: holes) | the run, with holes or without |
//!
//! # A pass
//! The thread that looks makes a plan ([`plan`]): which chunks are emptied, into which others. The pass then walks the index, a
//! part a step, and moves what it meets in these chunks; so it reads only items that the index names, never a slot that a writer
//! is filling. Then it waits a little for readers, and gives back the space of all free runs, one a step.
//!
//! A damaged item stays where it is, and so does what there is no space for. Extents are chunks of their own, and the index's segments
//! and nodes stay: none of these is moved.
//!
//! # Lock order
//! compaction -> (as an update). No thread waits for compaction but the one that asks for it.

pub mod canary;
mod pass;
mod plan;
mod report;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use heap::Heap;
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use pmem::{Dram, Medium};

use crate::Error;
use plan::Plan;

pub use pass::Moved;
pub use report::{CompactionProgress, CompactionReport, CompactionStats, OnCompaction};
pub use run::Compacting;

/// A look counts all chunks; so much must have become free or roomy before another one, and so large a part of what is taken.
/// With less the ratio hardly changes, while updates make the same chunks roomy again and again.
const LOOK_BYTES: u64 = 4 << 20;

/// An engine whose space is compacted.
pub trait Compacts {
    /// What the store lies on.
    type Medium: Medium;
    /// What lends the engine memory.
    type Dram: Dram;
    /// Where a walk of the index goes on.
    type Cursor: Default;

    /// The medium.
    fn medium(&self) -> &Self::Medium;

    /// The allocator.
    fn heap(&self) -> &Heap<Self::Dram>;

    /// What is known of the store's compaction.
    fn compaction(&self) -> &Compaction<Self::Cursor>;

    /// Moves what a part of the index names in chunks that are evacuated ([`Heap::is_evacuating`]), and enters each ([`Pass::note`]); where to
    /// go on, `None` at the end.
    ///
    /// # Errors
    /// Those of a write, but for damage and a full region, which are entered.
    fn move_part(&self, pass: &mut Pass<Self::Cursor>, cursor: Self::Cursor) -> Result<Option<Self::Cursor>, Error>;

    /// Gives up what the index has more than it needs, where that is known and worth it. It comes before the background looks, and before a plan.
    ///
    /// # Errors
    /// Those of a write.
    fn shrink(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Frees what no reader has any more; true while there is more to free, for which readers are waited for.
    ///
    /// # Errors
    /// Those of a write.
    fn settle(&self) -> Result<bool, Error>;

    /// Sees that the free space is known, and that writes are allowed.
    ///
    /// # Errors
    /// Why not.
    fn prepare_to_compact(&self) -> Result<(), Error>;
}

/// A store's compaction.
#[derive(Debug)]
pub struct Compaction<C> {
    /// Space taken over space in use, above which the background begins; never where there is none.
    above: Option<f64>,
    /// The background looks once so much was loosened; never while a pass is under way.
    check_bytes: AtomicU64,
    work: Mutex<Work<C>>,
    /// Held while a thread compacts by request.
    requested: ReentrantMutex<()>,
    /// Shared with callers for which the background moves nothing.
    rests: Arc<()>,
    moved_items: AtomicU64,
    moved_bytes: AtomicU64,
    freed_bytes: AtomicU64,
}

/// What is under way in the background.
#[derive(Debug)]
struct Work<C> {
    pass: Option<Pass<C>>,
    rest_until: Option<Instant>,
    has_checked: bool,
}

/// A plan that is carried out.
#[derive(Debug)]
pub struct Pass<C> {
    plan: Plan,
    stage: Stage<C>,
    moved_bytes_total: u64,
    report: CompactionReport,
}

/// What a pass does next.
#[derive(Debug)]
enum Stage<C> {
    /// Moves what is met in the part of the index at the cursor.
    Moving(C),
    /// Waits for readers of what was moved, the n-th time.
    Waiting(u32),
    /// Gives back the space of the next run, from this unit on.
    GivingBack(u32),
    /// Gives back a piece of the space above the mark.
    GivingBackAbove,
    /// Nothing is left to do.
    Over,
}

impl<C> Compaction<C> {
    /// Of a store whose background begins above this ratio of space taken to space in use; never if there is none.
    #[must_use]
    pub fn above(above: Option<f64>) -> Compaction<C> {
        Compaction {
            above,
            check_bytes: AtomicU64::new(if above.is_some() { LOOK_BYTES } else { u64::MAX }),
            work: Mutex::new(Work { pass: None, rest_until: None, has_checked: false }),
            requested: ReentrantMutex::default(),
            rests: Arc::default(),
            moved_items: AtomicU64::new(0),
            moved_bytes: AtomicU64::new(0),
            freed_bytes: AtomicU64::new(0),
        }
    }

    /// Keeps the background from moving anything until this is dropped; waits for a step that is under way.
    pub fn pause(&self) -> Arc<()> {
        let rest = Arc::clone(&self.rests);
        drop(self.work.lock());
        rest
    }

    /// For a thread that compacts by request, alone; others wait. Not twice for the same, which would wait for itself: its
    /// `progress` is called while it holds this, and no other lock.
    fn request(&self) -> Result<Requested<'_>, Error> {
        if self.requested.is_owned_by_current_thread() {
            return Err(Error::InsideCallback);
        }
        Ok(Requested { _alone: self.requested.lock(), _rest: self.pause() })
    }

    /// The background looks once so much was loosened, if it ever does.
    fn check_after(&self, bytes: u64) {
        let bytes = if self.above.is_some() { bytes } else { u64::MAX };
        self.check_bytes.store(bytes, Ordering::Relaxed);
    }

    fn note_moved(&self, len_bytes: u64) {
        self.moved_items.fetch_add(1, Ordering::Relaxed);
        self.moved_bytes.fetch_add(len_bytes, Ordering::Relaxed);
    }

    fn note_freed(&self, len_bytes: u64) {
        self.freed_bytes.fetch_add(len_bytes, Ordering::Relaxed);
    }

    /// What it has done since the store was opened.
    pub fn stats(&self) -> CompactionStats {
        CompactionStats {
            moved_items: self.moved_items.load(Ordering::Relaxed),
            moved_bytes: self.moved_bytes.load(Ordering::Relaxed),
            freed_bytes: self.freed_bytes.load(Ordering::Relaxed),
        }
    }
}

/// A compaction by request, during which the background rests.
struct Requested<'a> {
    _alone: ReentrantMutexGuard<'a, ()>,
    _rest: Arc<()>,
}
