//! Compaction: chunks of which little is in use are emptied, and the space of free runs goes back to the file system
//! (`docs/decisions/0017-compaction.md`). By request, or in the background once too much space is taken for what is live.
//!
//! | step of a move | a crash after it leaves |
//! |---|---|
//! | 1 pin; the entry of an item in a chunk that is evacuated is found, the item read and its checksum compared | nothing |
//! | 2 the item's bytes are written, unchanged, to a slot of its class elsewhere, and flushed | free space |
//! | 3 as an update, if the entry names the same item still | the item, here or there |
//! | 4 the old item is retired, and freed when no reader is left | the same; its room is free after opening |
//! | 5 the chunk, once empty, becomes a free run (`heap`: chunks) | the chunk, which nothing reaches, or the run |
//! | 6 the run's space is given back (`heap`: holes) | the run, with holes or without |
//!
//! # A pass
//! The thread that looks makes a plan ([`plan`]): which chunks are emptied, into which others. The pass then walks the index, a
//! segment a step, and moves what it meets in these chunks; so it reads only items that an entry names, never a slot that a writer
//! is filling. Then it waits a little for readers, and gives back the space of all free runs, one a step.
//!
//! A damaged item stays where it is, and so does what there is no room for. Extents are chunks of their own, and segments
//! stay: neither is moved.
//!
//! # Lock order
//! compaction -> (as an update). No thread waits for compaction but the one that asks for it.

mod mover;
mod pass;
mod plan;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};

use engine::{Compacted, CompactionStats, Error};
use index::partitioned_hash::Cursor;
use plan::Plan;

/// A look counts all chunks; so much must have become free or roomy before another one, and so large a part of what is taken.
/// With less the ratio hardly changes, while updates make the same chunks roomy again and again.
const LOOK_BYTES: u64 = 4 << 20;
/// A store's compaction.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// Space taken over space in use, above which the background begins; never where there is none.
    pub(crate) above: Option<f64>,
    /// The background looks once so much was loosened; never while a pass is under way.
    look_bytes: AtomicU64,
    work: Mutex<Work>,
    /// Held while a thread compacts by request.
    requested: ReentrantMutex<()>,
    /// Shared with callers for which the background moves nothing.
    rests: Arc<()>,
    moved_items: AtomicU64,
    moved_bytes: AtomicU64,
    given_back_bytes: AtomicU64,
}

/// What is under way in the background.
#[derive(Debug, Default)]
struct Work {
    pass: Option<Pass>,
    rest_until: Option<Instant>,
    has_looked: bool,
}

/// A plan that is carried out.
#[derive(Debug)]
struct Pass {
    plan: Plan,
    stage: Stage,
    moved_bytes_total: u64,
    report: Compacted,
}

/// What a pass does next.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Moves what is met in the segment at the cursor.
    Moving(Cursor),
    /// Waits for readers of what was moved, the n-th time.
    Waiting(u32),
    /// Gives back the space of the next run, from this unit on.
    GivingBack(u32),
    /// Gives back a piece of the space above the mark.
    GivingBackAbove,
}

impl Pass {
    /// Bytes to be moved, at most.
    fn moved_bytes_total(&self) -> u64 {
        self.moved_bytes_total
    }

    /// What it has done so far.
    fn report(&self) -> &Compacted {
        &self.report
    }
}

impl Compaction {
    pub(crate) fn above(above: Option<f64>) -> Compaction {
        Compaction {
            above,
            look_bytes: AtomicU64::new(if above.is_some() { LOOK_BYTES } else { u64::MAX }),
            work: Mutex::default(),
            requested: ReentrantMutex::default(),
            rests: Arc::default(),
            moved_items: AtomicU64::new(0),
            moved_bytes: AtomicU64::new(0),
            given_back_bytes: AtomicU64::new(0),
        }
    }

    /// Keeps the background from moving anything until this is dropped; waits for a step that is under way.
    pub(crate) fn rest(&self) -> Arc<()> {
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
        Ok(Requested { _alone: self.requested.lock(), _rest: self.rest() })
    }

    /// The background looks once so much was loosened, if it ever does.
    fn look_after(&self, bytes: u64) {
        let bytes = if self.above.is_some() { bytes } else { u64::MAX };
        self.look_bytes.store(bytes, Ordering::Relaxed);
    }

    fn note_moved(&self, len_bytes: u64) {
        self.moved_items.fetch_add(1, Ordering::Relaxed);
        self.moved_bytes.fetch_add(len_bytes, Ordering::Relaxed);
    }

    fn note_given_back(&self, len_bytes: u64) {
        self.given_back_bytes.fetch_add(len_bytes, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> CompactionStats {
        CompactionStats {
            moved_items: self.moved_items.load(Ordering::Relaxed),
            moved_bytes: self.moved_bytes.load(Ordering::Relaxed),
            given_back_bytes: self.given_back_bytes.load(Ordering::Relaxed),
        }
    }
}

/// A compaction by request, during which the background rests.
struct Requested<'a> {
    _alone: ReentrantMutexGuard<'a, ()>,
    _rest: Arc<()>,
}
