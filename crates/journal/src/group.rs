//! Group commit: one of the threads that wait for a sync makes it, for every thread that appended before the sync
//! began. Module `turns` decides which thread, and when.

use std::sync::atomic::Ordering;

use pmem::{Durability, MediumError};

use crate::File;
use crate::canary;
use crate::journal::Journal;
use crate::tail::Extent;

impl<F: File> Journal<F> {
    /// Waits until the log is as durable up to `position` as `level` requires.
    pub(crate) fn wait(&self, position: u64, level: Durability) -> Result<(), MediumError> {
        match self.demanded(level) {
            Durability::Power if !self.log.breaks(canary::WAIT_BEFORE_SYNC) => self.wait_synced(position),
            _ => self.wait_written(position),
        }
    }

    /// Returns the level that a write at `level` has to wait for. At `buffered`, it waits for a sync if older
    /// writes have waited too long for theirs.
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
        // Also if another thread has written it out: that thread may only have needed space, and may request no
        // sync until it ends.
        if self.options.level == Durability::Buffered {
            self.ask_for_sync();
        }
        self.healthy()
    }

    /// Requests that everything appended so far is synced within the interval, even if no thread waits for it.
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

    /// Waits until the log is durable up to `position` and itself records that: then no damage at its end can
    /// remove any of that unnoticed.
    pub(crate) fn wait_proved(&self, position: u64) -> Result<(), MediumError> {
        if self.append.proved.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        self.wait_synced(position)?;
        let (before, end) = self.append_mark();
        self.wait_synced(end)?;
        // The mark itself needs no proof.
        self.append.proved.fetch_max(if before == position { end } else { position }, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
