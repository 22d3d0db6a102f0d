//! Background work, a bounded step at a time: the sweep after open, freeing, growth ahead of writers, reaping.

use std::sync::atomic::Ordering;

use index::partitioned_hash::Cursor;
use pmem::{Dram, Medium};

use super::HiKv;
use super::order::Order;
use super::reaper::Round;
use crate::{Error, Progress};

/// Space that is kept ready above the mark, as a part of what is used, within these bounds: the lower one keeps small
/// stores small, the upper one is a tenth of a second of the fastest writer.
const AHEAD_SHARE: u64 = 32;
const AHEAD_BYTES_MIN: u64 = 1 << 20;
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// The state of the work; whoever holds it does the work.
#[derive(Debug, Default)]
pub(super) struct Background {
    sweep: Cursor,
    /// Some entry names no proper place. Such a store never reuses space below the mark.
    has_misplaced: bool,
    /// The reaper's, while one runs.
    round: Option<Round>,
}

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    pub(super) fn background_step(&self) -> Result<Progress, Error> {
        let (order, space) = (O::step(self)?, self.space_step()?);
        Ok(if order == Progress::More { Progress::More } else { space })
    }

    /// Sweep, growth and reaping: one thread at a time. Of a store that is only read nobody needs to know the free space, but who
    /// asks for it.
    fn space_step(&self) -> Result<Progress, Error> {
        if !self.medium.is_writable() {
            return Ok(Progress::Idle);
        }
        let Some(mut background) = self.background.try_lock() else {
            return Ok(Progress::Idle);
        };
        if !self.swept.load(Ordering::Acquire) {
            self.sweep_step(&mut background)?;
            return Ok(Progress::More);
        }
        if self.heap.prepare(&self.medium, self.ahead_bytes())? {
            return Ok(Progress::More);
        }
        self.reap_step(&mut background.round)
    }

    /// True while a writer may soon meet the end of what is ready.
    #[inline]
    pub(super) fn runs_low(&self) -> bool {
        self.heap.spare_bytes() < self.ahead_bytes() / 4 * 3
    }

    /// Sweeps one segment.
    fn sweep_step(&self, background: &mut Background) -> Result<(), Error> {
        let has_misplaced = &mut background.has_misplaced;
        background.sweep = self.index.sweep(self.cx(), background.sweep, &mut |_| *has_misplaced = true)?;
        if background.sweep.is_done() {
            if !background.has_misplaced && self.medium.is_writable() {
                self.heap.finish_sweep(&self.medium);
            }
            self.swept.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Sweeps to the end; what others have swept need not be done again.
    pub(super) fn finish_sweep(&self) -> Result<(), Error> {
        while !self.swept.load(Ordering::Acquire) {
            let mut background = self.background.lock();
            if !self.swept.load(Ordering::Acquire) {
                self.sweep_step(&mut background)?;
            }
        }
        Ok(())
    }

    /// Frees what no reader can reach any more; true if there was any.
    pub(super) fn collect(&self) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx()));
        self.cx().collect() || cleared
    }

    fn ahead_bytes(&self) -> u64 {
        (self.heap.mark_bytes() / AHEAD_SHARE).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX)
    }
}
