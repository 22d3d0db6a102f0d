//! Background work in bounded steps: the sweep after open, freeing, growth ahead of writers, filling the cached table,
//! reaping.

use std::sync::atomic::Ordering;

use engine::{Compacting, Error, Progress};
use index::segmented::{self, Cursor, Misplacement, Sweep};
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use crate::RewoHash;

/// The state of the background work; the thread that holds it does the work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    sweep: Sweep,
    /// The next segment of the reaper's walk.
    pub(crate) reap: Option<Cursor>,
    /// The next segment of the walk that fills the cached table of an opened store.
    pub(crate) filling: Option<Cursor>,
    /// The next segment of the walk that frees slots in full buckets.
    evicting: Option<Cursor>,
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Does one step; only one thread at a time does. In a read-only store, free space is computed when a caller
    /// requests it.
    pub(crate) fn background_step(&self) -> Result<Progress, Error> {
        if !self.medium.is_writable() {
            return Ok(Progress::Idle);
        }
        let Some(mut background) = self.background.try_lock() else { return Ok(Progress::Idle) };
        if !self.swept.load(Ordering::Acquire) {
            self.sweep_step(&mut background)?;
            return Ok(Progress::More);
        }
        if self.heap.prepare(&self.medium, self.heap.ahead_bytes()) {
            return Ok(Progress::More);
        }
        if self.fill_step(&mut background)? == Progress::More {
            return Ok(Progress::More);
        }
        // The reaper's walk ends before the next pre-eviction walk begins: if keys come and go all the time, there is
        // always one to do.
        if background.reap.is_none() && self.pre_evict_step(&mut background) == Progress::More {
            return Ok(Progress::More);
        }
        self.reap(background)?.or_else(|| self.compaction_step())
    }

    /// Moves items out of the full buckets of a segment, if enabled. Starts another walk once a bucket may be full
    /// again.
    fn pre_evict_step(&self, background: &mut Background) -> Progress {
        if !self.pre_evicts {
            return Progress::Idle;
        }
        let cursor = match background.evicting {
            Some(cursor) => cursor,
            None if self.table.take_crowding() => Cursor::default(),
            None => return Progress::Idle,
        };
        let _pin = epoch::pin();
        let (_, next) = self.table.pre_evict(self.cx(), cursor);
        background.evicting = (!next.is_done()).then_some(next);
        if background.evicting.is_some() { Progress::More } else { Progress::Idle }
    }

    /// Returns true while there is work that writers may soon wait for.
    pub(crate) fn is_wanted(&self) -> bool {
        let is_space_short = || !self.swept.load(Ordering::Acquire) || self.heap.runs_low() || self.may_compact();
        self.medium.is_writable() && is_space_short() || self.reaper.expectation.is_wanted()
    }

    fn sweep_step(&self, background: &mut Background) -> Result<(), Error> {
        let sweep = |from, misplaced: &mut dyn FnMut(Misplacement)| self.table.sweep(self.cx(), from, misplaced);
        Ok(background.sweep.step(self.cx(), &self.swept, sweep)?)
    }

    /// Finishes the sweep. Steps that other threads have done are not repeated.
    pub(crate) fn finish_sweep(&self) -> Result<(), Error> {
        let step = |background: &mut Background| self.sweep_step(background);
        segmented::finish_sweep(&self.swept, || self.background.lock(), step)
    }

    /// Stops sweep, growth and reaper while the guard is held. The caller is not pinned.
    pub(crate) fn keep_background_away(&self) -> MutexGuard<'_, Background> {
        self.background.lock()
    }

    /// Throttles a write that leaves garbage, before it takes a lock. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn bound_garbage(&self) {
        if self.limbo.is_over() {
            self.hold_up();
        }
    }

    #[cold]
    #[inline(never)]
    fn hold_up(&self) {
        self.held_up.throttle(&self.limbo, || _ = self.collect());
    }

    /// Returns true while readers may keep garbage.
    pub(crate) fn has_garbage(&self) -> bool {
        !self.limbo.is_empty() || !self.cleared.is_empty()
    }

    /// Frees garbage that no reader can reach any more. Returns true if there was any.
    pub(crate) fn collect(&self) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx()));
        self.cx().collect() || cleared
    }
}
