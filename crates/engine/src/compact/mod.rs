//! Compaction empties sparsely used chunks and returns the space of free runs to the file system
//! (`docs/decisions/0017-compact-by-updates-and-return-space-as-holes.md`, `0108-compaction-of-every-engine.md`). It
//! runs on request, or in the background once the allocated space is too large for the live data. An engine implements
//! how an item is moved ([`Compacts`]); this module decides when, and out of which chunks.
//!
//! | step of a move | a crash after it leaves |
//! |---|---|
//! | 1 an item in an evacuated chunk is found and read, and its checksum compared | nothing |
//! | 2 the item is written to a slot elsewhere, and flushed | free space |
//! | 3 the index is changed as by an update, if the key still has this item | the item, at either place |
//! | 4 the old item is retired, and freed when no reader is left | the same; its space is free after opening |
//! | 5 the chunk, once empty, becomes a free run (`heap`: chunks) | the unreachable chunk, or the run |
//! | 6 the space of the run is returned (`heap`: holes) | the run, with holes or without |
//!
//! # A pass
//! A thread that checks the chunks makes a plan ([`plan`]): which chunks are emptied, into which others. The pass then
//! walks the index, one part per step, and moves the items that it meets in these chunks. So it reads only items that
//! the index names, never a slot that a writer is filling. Then it waits a little for readers, and returns the space of
//! all free runs, one per step.
//!
//! A damaged item stays where it is, and so does an item without space for a copy. Extents are chunks that hold one
//! item, and the index has its own segments and nodes: none of these is moved.
//!
//! # Lock order
//! compaction -> (as an update). Only the thread that requests a compaction waits for it.

pub mod canary;
mod pass;
mod plan;
mod report;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use heap::Heap;
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use pmem::{Dram, Medium};

use crate::Error;
use plan::Plan;

pub use pass::Moved;
pub use report::{CompactionProgress, CompactionReport, CompactionStats, OnCompaction};
pub use run::Compacting;

/// The background counts all chunks again after at least this many bytes have become free, and at least a share of the
/// allocated space (`LOOK_SHARE`). With less the ratio hardly changes, while updates empty the same chunks again and
/// again.
const LOOK_BYTES: u64 = 4 << 20;

/// An engine whose space is compacted.
pub trait Compacts {
    /// The medium of the store.
    type Medium: Medium;
    /// The source of the engine's DRAM.
    type Dram: Dram;
    /// The position of a walk of the index.
    type Cursor: Default;

    /// Returns the medium.
    fn medium(&self) -> &Self::Medium;

    /// Returns the allocator.
    fn heap(&self) -> &Heap<Self::Dram>;

    /// Returns the store's compaction.
    fn compaction(&self) -> &Compaction<Self::Cursor>;

    /// Moves the items of one part of the index that are in evacuated chunks ([`heap::Table::is_evacuating`]), and
    /// notes each ([`Pass::note`]). Returns the position after the part, `None` at the end.
    ///
    /// # Errors
    /// Those of a write. Exception: damage and a full region are noted in the pass.
    fn move_part(&self, pass: &mut Pass<Self::Cursor>, cursor: Self::Cursor) -> Result<Option<Self::Cursor>, Error>;

    /// Shrinks an index that is larger than it needs to be, if the engine can detect that and it is worthwhile. Called
    /// before the background counts chunks, and before a plan.
    ///
    /// # Errors
    /// Those of a write.
    fn shrink(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Frees garbage without readers; returns true while garbage waits for readers.
    ///
    /// # Errors
    /// Those of a write.
    fn settle(&self) -> Result<bool, Error>;

    /// Ensures that free space is known and that writes are allowed.
    ///
    /// # Errors
    /// [`Error::Medium`] if nothing can be written; [`Error::Corrupt`] if damage keeps free space unknown.
    fn prepare_to_compact(&self) -> Result<(), Error>;
}

/// The compaction of a store.
#[derive(Debug)]
pub struct Compaction<C> {
    /// The ratio of allocated space to space in use above which the background compacts; `None` for never.
    above: Option<f64>,
    /// The background counts chunks once this many bytes became free; `u64::MAX` while a pass is under way.
    check_bytes: AtomicU64,
    /// Readers kept garbage at the last count of chunks, or at the end of a pass: its space counted as used. The
    /// background counts again once no garbage is left.
    is_garbage_counted: AtomicBool,
    work: Mutex<Work<C>>,
    /// Held while a thread compacts on request.
    requested: ReentrantMutex<()>,
    /// Shared with callers that pause the background.
    rests: Arc<()>,
    moved_items: AtomicU64,
    moved_bytes: AtomicU64,
    freed_bytes: AtomicU64,
}

/// The work under way in the background.
#[derive(Debug)]
struct Work<C> {
    pass: Option<Pass<C>>,
    rest_until: Option<Instant>,
    has_checked: bool,
}

/// A plan that is being carried out.
#[derive(Debug)]
pub struct Pass<C> {
    plan: Plan,
    stage: Stage<C>,
    moved_bytes_total: u64,
    report: CompactionReport,
}

/// The next action of a pass.
#[derive(Debug)]
enum Stage<C> {
    /// Moves items of the part of the index at the cursor.
    Moving(C),
    /// Waits for readers of moved items, for the n-th time.
    Waiting(u32),
    /// Returns the space of the next run, from this unit on.
    GivingBack(u32),
    /// Returns a piece of the space above the mark.
    GivingBackAbove,
    /// The pass is complete.
    Over,
}

impl<C> Compaction<C> {
    /// Returns the compaction of a store whose background starts above this ratio of allocated space to space in use;
    /// `None` for never.
    #[must_use]
    pub fn above(above: Option<f64>) -> Compaction<C> {
        Compaction {
            above,
            check_bytes: AtomicU64::new(if above.is_some() { LOOK_BYTES } else { u64::MAX }),
            is_garbage_counted: AtomicBool::new(false),
            work: Mutex::new(Work { pass: None, rest_until: None, has_checked: false }),
            requested: ReentrantMutex::default(),
            rests: Arc::default(),
            moved_items: AtomicU64::new(0),
            moved_bytes: AtomicU64::new(0),
            freed_bytes: AtomicU64::new(0),
        }
    }

    /// Stops the background from moving items until the returned handle is dropped. Waits for a step under way.
    pub fn pause(&self) -> Arc<()> {
        let rest = Arc::clone(&self.rests);
        drop(self.work.lock());
        rest
    }

    /// Waits until this is the only thread that compacts on request. A nested request of the same thread fails, because
    /// it would wait for itself: `progress` is called while its thread holds this lock and no other.
    fn request(&self) -> Result<Requested<'_>, Error> {
        if self.requested.is_owned_by_current_thread() {
            return Err(Error::InsideCallback);
        }
        Ok(Requested { _alone: self.requested.lock(), _rest: self.pause() })
    }

    /// Lets the background count chunks once this many bytes became free, if it compacts at all.
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

    /// Returns the work since the store was opened.
    pub fn stats(&self) -> CompactionStats {
        CompactionStats {
            moved_items: self.moved_items.load(Ordering::Relaxed),
            moved_bytes: self.moved_bytes.load(Ordering::Relaxed),
            freed_bytes: self.freed_bytes.load(Ordering::Relaxed),
        }
    }
}

/// A compaction on request, during which the background is paused.
struct Requested<'a> {
    _alone: ReentrantMutexGuard<'a, ()>,
    _rest: Arc<()>,
}
