//! Background work in bounded steps: the sweep after an open, freeing, growth ahead of writers, reaping, compaction.

use std::sync::atomic::Ordering;

use index::segmented::{self, Misplacement};
use parking_lot::MutexGuard;
use pmem::{Medium, Offset};

use crate::order::Ordered;
use crate::space::background::Background;
use crate::space::reap::Reaped;
use crate::{HiKv, Memory};
use engine::{Compacting, Error, Progress};

impl<M: Medium, D: Memory> HiKv<M, D> {
    pub(crate) fn background_step(&self) -> Result<Progress, Error> {
        let (order, space) = (Ordered::step(self)?, self.space_step()?);
        Ok(if order == Progress::More { Progress::More } else { space })
    }

    /// Does a step of sweep, growth and reaping, by one thread at a time. In a read-only store, free space is computed
    /// when a caller requests it.
    fn space_step(&self) -> Result<Progress, Error> {
        if !self.reader.medium().is_writable() {
            return Ok(Progress::Idle);
        }
        let Some(mut background) = self.background.try_lock() else {
            return Ok(Progress::Idle);
        };
        if !self.swept.load(Ordering::Acquire) {
            self.sweep_step(&mut background)?;
            return Ok(Progress::More);
        }
        if self.heap.prepare(self.reader.medium(), self.heap.ahead_bytes()) {
            return Ok(Progress::More);
        }
        match self.reap_and_report(background)? {
            Progress::Idle => self.compaction_step(),
            progress => Ok(progress),
        }
    }

    /// Does a step of the reaper, and calls the callback for the keys that it deleted.
    pub(crate) fn reap_and_report(&self, mut background: MutexGuard<'_, Background>) -> Result<Progress, Error> {
        let mut reaped = Reaped::default();
        let progress = self.reap_step(&mut background.round, &mut reaped);
        drop(background);
        let reaped = reaped.into_items();
        let has_called_back = !reaped.is_empty();
        reaped.into_iter().for_each(|item| self.expired_hook.notify(item));
        // The step ends with a callback, which may have closed the store.
        if has_called_back { progress.map(|_| Progress::More) } else { progress }
    }

    /// Sweeps one segment.
    fn sweep_step(&self, background: &mut Background) -> Result<(), Error> {
        let sweep =
            |from, misplaced: &mut dyn FnMut(Misplacement)| self.reader.index().sweep(self.cx(), from, misplaced);
        Ok(background.sweep.step(self.cx(), &self.swept, sweep)?)
    }

    /// Stops sweep, growth and reaper while the guard is held. The caller is not pinned.
    pub(crate) fn keep_background_away(&self) -> MutexGuard<'_, Background> {
        self.background.lock()
    }

    /// Returns an entry that names no valid place, if the sweep has met one.
    pub(crate) fn misplaced(&self) -> Option<Offset> {
        self.background.lock().sweep.misplaced()
    }

    /// Finishes the sweep; segments that other threads have swept are not swept again.
    pub(crate) fn finish_sweep(&self) -> Result<(), Error> {
        let step = |background: &mut Background| self.sweep_step(background);
        segmented::finish_sweep(&self.swept, || self.background.lock(), step)
    }
}
