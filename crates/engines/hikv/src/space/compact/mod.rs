//! Compaction: chunks of which little is in use are emptied, and the space of free runs goes back to the file system
//! (`docs/decisions/0017-compaction.md`). By request, or in the background once too much space is taken for what is live.
//!
//! | step of a move | a crash after it leaves |
//! |---|---|
//! | 1 pin; the entry of an item in a chunk that is evacuated is found, the item read and its checksum compared | nothing |
//! | 2 its bytes are written, as they are, to a slot of its class elsewhere, and flushed | free space |
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

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use pmem::Medium;

use crate::{HiKv, Memory};
use engine::{Compacted, CompactionProgress, CompactionStats, Error, Progress};
use pass::Pass;
use plan::Thoroughness;

/// A look counts all chunks; so much must have become free or roomy before another one, and so large a part of what is taken.
/// With less the ratio hardly changes, while updates make the same chunks roomy again and again.
const LOOK_BYTES: u64 = 4 << 20;
const LOOK_SHARE: u64 = 16;
/// What a pass in the background must promise.
const GAIN_BYTES_MIN: u64 = 1 << 20;
/// The background rests this many times as long as it has worked, so that writers keep their cores.
const REST_SHARE: u32 = 3;
/// However long a step took (a large run), the next is not put off for longer.
const REST_MAX: Duration = Duration::from_millis(20);
/// What is written meanwhile makes new gaps: a request does not go after them for ever.
const PASS_COUNT_MAX: usize = 3;

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

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// True if enough has changed for the background to look.
    #[inline]
    pub(crate) fn may_compact(&self) -> bool {
        self.heap.loosened_bytes() >= self.compaction.look_bytes.load(Ordering::Relaxed)
    }

    /// A bounded step in the background, of a store that was swept.
    pub(crate) fn compaction_step(&self) -> Result<Progress, Error> {
        let Some(above) = self.compaction.above else { return Ok(Progress::Idle) };
        if !self.heap.is_swept() {
            // A damaged store's free space stays unknown: there is nothing to look at.
            self.heap.forget_loosened();
            return Ok(Progress::Idle);
        }
        let Some(mut work) = self.compaction.work.try_lock() else { return Ok(Progress::Idle) };
        if Arc::strong_count(&self.compaction.rests) > 1 {
            return Ok(Progress::Idle);
        }
        let start = Instant::now();
        let rest = work.rest_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(start));
        if work.pass.is_some() && !rest.is_zero() {
            return Ok(Progress::Rest(rest));
        }
        if work.pass.is_none() && (self.may_compact() || !work.has_looked) {
            work.has_looked = true;
            work.pass = self.begin_if_above(above)?;
        }
        let Some(mut pass) = work.pass.take() else { return Ok(Progress::Idle) };
        match self.pass_step(&mut pass) {
            Ok(false) => work.pass = Some(pass),
            ended => {
                self.end_pass(&mut pass);
                self.compaction.look_after(LOOK_BYTES);
                ended?;
            }
        }
        let rest = (start.elapsed() * REST_SHARE).min(REST_MAX);
        work.rest_until = Some(start + rest);
        Ok(Progress::Rest(rest))
    }

    /// Looks, and begins a pass where too much space is taken and something can be gained.
    fn begin_if_above(&self, above: f64) -> Result<Option<Pass>, Error> {
        self.heap.forget_loosened();
        let live_bytes = self.heap.stats().live_bytes;
        let footprint_bytes = self.heap.footprint_bytes();
        self.compaction.look_after(LOOK_BYTES.max(footprint_bytes / LOOK_SHARE));
        if footprint_bytes as f64 <= above * live_bytes as f64 + GAIN_BYTES_MIN as f64 {
            return Ok(None);
        }
        let pass = self.plan_pass(Thoroughness::Worthwhile, GAIN_BYTES_MIN)?;
        if pass.is_some() {
            self.compaction.look_after(u64::MAX);
        }
        Ok(pass)
    }

    /// Compacts as far as it can be done, while others read and write, and shows how far it is to `progress`.
    pub(crate) fn compact_now(&self, progress: &mut dyn FnMut(CompactionProgress)) -> Result<Compacted, Error> {
        self.check_writable()?;
        self.finish_sweep()?;
        if !self.heap.is_swept() {
            let offset = self.misplaced().map_or(0, |entry| entry.0);
            return Err(Error::Corrupt {
                offset,
                what: "an entry names a place that is none: free space is not known",
            });
        }
        let _requested = self.compaction.request()?;
        let begun = self.compaction.work.lock().pass.take();
        if let Some(mut pass) = begun {
            self.end_pass(&mut pass);
        }
        self.compaction.look_after(u64::MAX);
        let mut compacted = Compacted { taken_bytes_before: self.taken_bytes(), ..Compacted::default() };
        let passes = self.run_passes(&mut compacted, progress);
        compacted.taken_bytes_after = self.taken_bytes();
        self.compaction.look_after(LOOK_BYTES);
        passes.map(|()| compacted)
    }

    fn run_passes(&self, compacted: &mut Compacted, progress: &mut dyn FnMut(CompactionProgress)) -> Result<(), Error> {
        for _ in 0..PASS_COUNT_MAX {
            let Some(mut pass) = self.plan_pass(Thoroughness::Full, 1)? else { break };
            let done = self.run_pass(&mut pass, compacted, progress);
            self.end_pass(&mut pass);
            compacted.add(pass.report());
            done?;
        }
        Ok(())
    }

    fn run_pass(
        &self,
        pass: &mut Pass,
        before: &Compacted,
        progress: &mut dyn FnMut(CompactionProgress),
    ) -> Result<(), Error> {
        while !self.pass_step(pass)? {
            let report = pass.report();
            progress(CompactionProgress {
                moved_items: before.moved_items + report.moved_items,
                moved_bytes: before.moved_bytes + report.moved_bytes,
                moved_bytes_total: before.moved_bytes + pass.moved_bytes_total().max(report.moved_bytes),
                given_back_bytes: before.given_back_bytes + report.given_back_bytes,
            });
        }
        Ok(())
    }

    /// The space that the region takes: the medium's figure, or the heap's.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.medium.allocated_bytes().unwrap_or_else(|| self.heap.footprint_bytes())
    }
}
