//! Background work in bounded steps: the sweep after open, freeing, growth ahead of writers, filling the cached table,
//! reaping.

mod fill;
mod reap;

use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Error, Progress};
use index::cached_table::canary;
use index::segmented::{self, Cursor, Misplacement, Sweep};
use parking_lot::{Mutex, MutexGuard};
use pmem::{Dram, Medium};

use crate::writer::Writer;

/// The background work of a store.
pub(crate) struct Background {
    work: Mutex<Work>,
    /// True if every item is counted; then free space is known too, unless the store is damaged or read-only.
    swept: AtomicBool,
    pre_evicts: bool,
}

/// The state of the background work; the thread that holds it does the work.
#[derive(Debug, Default)]
pub(crate) struct Work {
    sweep: Sweep,
    /// The next segment of the reaper's walk.
    reap: Option<Cursor>,
    /// The next segment of the walk that fills the cached table of an opened store.
    filling: Option<Cursor>,
    /// The next segment of the walk that frees slots in full buckets.
    evicting: Option<Cursor>,
}

impl Background {
    pub(crate) fn new(is_swept: bool) -> Background {
        Background { work: Mutex::default(), swept: AtomicBool::new(is_swept), pre_evicts: false }
    }

    pub(crate) fn set_pre_evicts(&mut self, pre_evicts: bool) {
        self.pre_evicts = pre_evicts;
    }

    pub(crate) fn pre_evicts(&self) -> bool {
        self.pre_evicts
    }

    pub(crate) fn is_swept(&self) -> bool {
        self.swept.load(Ordering::Acquire)
    }

    /// Prepares to fill the cached table of a store that may have items which the table lacks.
    pub(crate) fn expect_filling<M: Medium, D: Dram>(&mut self, writer: &Writer<M, D>) {
        let may_have_items = !writer.space().heap().is_swept() && !writer.medium().breaks(canary::UNFILLED_TRUSTED);
        if let Some(cache) = writer.reader().cache().table().filter(|_| may_have_items) {
            cache.is_unfilled();
            self.work.get_mut().filling = Some(Cursor::default());
        }
    }

    /// Does one step; only one thread at a time does. In a read-only store, free space is computed when a caller
    /// requests it. If there is nothing more urgent, calls `compact`.
    pub(crate) fn step<M: Medium, D: Dram>(
        &self,
        writer: &Writer<M, D>,
        compact: impl FnOnce() -> Result<Progress, Error>,
    ) -> Result<Progress, Error> {
        if !writer.medium().is_writable() {
            return Ok(Progress::Idle);
        }
        let Some(mut work) = self.work.try_lock() else { return Ok(Progress::Idle) };
        if !self.is_swept() {
            self.sweep_step(&mut work, writer)?;
            return Ok(Progress::More);
        }
        let heap = writer.space().heap();
        if heap.prepare(writer.medium(), heap.ahead_bytes()) {
            return Ok(Progress::More);
        }
        if fill::step(&mut work.filling, writer.reader())? == Progress::More {
            return Ok(Progress::More);
        }
        // The reaper's walk ends before the next pre-eviction walk begins: if keys come and go all the time, there is
        // always one to do.
        if self.pre_evicts && work.reap.is_none() && pre_evict(&mut work.evicting, writer) == Progress::More {
            return Ok(Progress::More);
        }
        reap::step(work, writer)?.or_else(compact)
    }

    /// Does a step of the reaper for a writer, if the reaper is behind.
    pub(crate) fn keep_pace<M: Medium, D: Dram>(&self, writer: &Writer<M, D>) -> Result<(), Error> {
        if !writer.expiring().is_behind() || !self.is_swept() || epoch::is_pinned() {
            return Ok(());
        }
        match self.work.try_lock_for(reap::TURN_MAX) {
            Some(work) => reap::step(work, writer).map(drop),
            None => Ok(()),
        }
    }

    fn sweep_step<M: Medium, D: Dram>(&self, work: &mut Work, writer: &Writer<M, D>) -> Result<(), Error> {
        let sweep = |from, misplaced: &mut dyn FnMut(Misplacement)| writer.table().sweep(writer.cx(), from, misplaced);
        Ok(work.sweep.step(writer.cx(), &self.swept, sweep)?)
    }

    /// Finishes the sweep. Steps that other threads have done are not repeated.
    pub(crate) fn finish_sweep<M: Medium, D: Dram>(&self, writer: &Writer<M, D>) -> Result<(), Error> {
        segmented::finish_sweep(&self.swept, || self.work.lock(), |work: &mut Work| self.sweep_step(work, writer))
    }

    /// Stops sweep, growth and reaper while the guard is held. The caller is not pinned.
    pub(crate) fn pause_background(&self) -> MutexGuard<'_, Work> {
        self.work.lock()
    }
}

/// Moves items out of the full buckets of a segment. Starts another walk once a bucket may be full again.
fn pre_evict<M: Medium, D: Dram>(evicting: &mut Option<Cursor>, writer: &Writer<M, D>) -> Progress {
    let cursor = match *evicting {
        Some(cursor) => cursor,
        None if writer.table().take_crowding() => Cursor::default(),
        None => return Progress::Idle,
    };
    let _pin = epoch::pin();
    let (_, next) = writer.table().pre_evict(writer.cx(), cursor);
    *evicting = (!next.is_done()).then_some(next);
    if evicting.is_some() { Progress::More } else { Progress::Idle }
}
