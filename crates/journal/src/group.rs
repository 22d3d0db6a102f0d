//! Group commit: of all threads that wait for a sync one makes it, for every thread that appended before the sync began. Which
//! one, and when, is decided in `turns`.

use std::sync::atomic::Ordering;

use pmem::{Durability, MediumError};

use crate::File;
use crate::canary;
use crate::journal::Journal;
use crate::tail::Extent;

impl<F: File> Journal<F> {
    /// Returns once the log is as durable up to `position` as `level` says.
    pub(crate) fn wait(&self, position: u64, level: Durability) -> Result<(), MediumError> {
        match self.demanded(level) {
            Durability::Power if !self.log.breaks(canary::WAIT_BEFORE_SYNC) => self.wait_synced(position),
            _ => self.wait_written(position),
        }
    }

    /// What a write at `level` has to wait for: at `buffered` for a sync where older ones have waited too long for theirs.
    pub(crate) fn demanded(&self, level: Durability) -> Durability {
        let is_held = level == Durability::Buffered && self.requests.is_overdue();
        if is_held { Durability::Power } else { level }
    }

    pub(crate) fn wait_written(&self, position: u64) -> Result<(), MediumError> {
        if self.is_synced(position) {
            return Ok(());
        }
        if !self.is_written(position) {
            self.write_out(Extent::Cached)?;
        }
        // Also if another has written it out: he may have done so to have room, and ask for nothing until he has ended.
        if self.options.level == Durability::Buffered {
            self.ask_for_sync();
        }
        self.healthy()
    }

    /// What was appended so far is synced within the interval, whether a thread waits for it or not.
    pub(crate) fn ask_for_sync(&self) {
        if self.options.background {
            self.requests.within(self.options.sync_interval);
        }
    }

    pub(crate) fn wait_synced(&self, position: u64) -> Result<(), MediumError> {
        if self.is_synced(position) {
            return Ok(());
        }
        let waiting = self.append.turns.join();
        if let Some(_turn) = waiting.turn(|| self.is_synced(position) || self.healthy().is_err()) {
            let written = self.write_out(self.to_be_synced())?;
            self.sync_log()?;
            self.note_synced(written);
        }
        if self.is_synced(position) { Ok(()) } else { self.healthy() }
    }

    /// Returns once the log is durable up to `position`, and says so itself: no damage to its end can take any of that unnoticed.
    pub(crate) fn wait_proved(&self, position: u64) -> Result<(), MediumError> {
        if self.append.proved.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        self.wait_synced(position)?;
        let (before, end) = self.append_mark();
        self.wait_synced(end)?;
        // Of the mark itself nothing needs a proof.
        self.append.proved.fetch_max(if before == position { end } else { position }, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
