//! Background work, a bounded step at a time: the sweep after open, freeing, growth ahead of writers, the cached table's items, reaping.

use std::sync::atomic::Ordering;

use engine::{Compacting, Error, Progress};
use index::segmented::{self, Cursor, Misplacement, Sweep};
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use crate::RewoHash;

/// The state of the work; its holder does the work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    sweep: Sweep,
    /// Where the reaper's walk goes on.
    pub(crate) reap: Option<Cursor>,
    /// Where the walk goes on that fills the cached table of an opened store.
    pub(crate) filling: Option<Cursor>,
    /// Where the walk goes on that makes room in full buckets.
    evicting: Option<Cursor>,
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// One thread at a time. In a store that is only read the free space is found out when a caller asks for it.
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
        // A walk of the reaper ends before the next that makes room begins: where keys come and go all the time there is always one.
        if background.reap.is_none() && self.pre_evict_step(&mut background) == Progress::More {
            return Ok(Progress::More);
        }
        self.reap(background)?.or_else(|| self.compaction_step())
    }

    /// Relieves full buckets of a segment, where that is asked for. It walks again once there may be something to find.
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

    /// True while there is something that writers may soon wait for.
    pub(crate) fn is_wanted(&self) -> bool {
        let is_space_short = || !self.swept.load(Ordering::Acquire) || self.heap.runs_low() || self.may_compact();
        self.medium.is_writable() && is_space_short() || self.reaper.expectation.is_wanted()
    }

    fn sweep_step(&self, background: &mut Background) -> Result<(), Error> {
        let sweep = |from, misplaced: &mut dyn FnMut(Misplacement)| self.table.sweep(self.cx(), from, misplaced);
        Ok(background.sweep.step(self.cx(), &self.swept, sweep)?)
    }

    /// Sweeps to the end; what others have swept need not be done again.
    pub(crate) fn finish_sweep(&self) -> Result<(), Error> {
        let step = |background: &mut Background| self.sweep_step(background);
        segmented::finish_sweep(&self.swept, || self.background.lock(), step)
    }

    /// Sweep, growth and reaper stand still while this is held. The caller is not pinned.
    pub(crate) fn keep_background_away(&self) -> MutexGuard<'_, Background> {
        self.background.lock()
    }

    /// Comes before a write that leaves garbage. The caller holds no lock.
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

    /// True while readers may keep something.
    pub(crate) fn has_garbage(&self) -> bool {
        !self.limbo.is_empty() || !self.cleared.is_empty()
    }

    /// Frees what no reader can reach any more; true if there was any.
    pub(crate) fn collect(&self) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx()));
        self.cx().collect() || cleared
    }
}
