//! Group commit: of all who wait for a sync one makes it, for everybody who appended before it began.

use std::sync::atomic::Ordering;

use pmem::{Canary, Durability, MediumError};

use crate::File;
use crate::journal::Journal;

impl<F: File> Journal<F> {
    /// Returns once the log is as durable up to `position` as `level` says. A poisoned log takes nothing in, so what was
    /// appended to it may not even have a position: nobody is told of success any more.
    pub(crate) fn wait(&self, position: u64, level: Durability) -> Result<(), MediumError> {
        match level {
            Durability::Power if !self.log.breaks(Canary::WaitBeforeSync) => self.wait_synced(position),
            _ => self.wait_written(position),
        }?;
        self.healthy()
    }

    fn wait_written(&self, position: u64) -> Result<(), MediumError> {
        if self.written.load(Ordering::Acquire) < position {
            self.write_out()?;
            if self.options.level == Durability::Buffered {
                self.ask_for_sync();
            }
        }
        Ok(())
    }

    /// What was appended so far is synced within the interval, whether somebody waits for it or not.
    pub(crate) fn ask_for_sync(&self) {
        if self.options.background {
            self.requests.within(self.options.sync_interval);
        }
    }

    pub(crate) fn wait_synced(&self, position: u64) -> Result<(), MediumError> {
        let is_synced = || self.synced.load(Ordering::Acquire) >= position;
        while !is_synced() {
            self.healthy()?;
            let mut is_syncing = self.is_syncing.lock();
            if is_synced() {
                break;
            }
            if *is_syncing {
                self.synced_more.wait(&mut is_syncing);
                continue;
            }
            *is_syncing = true;
            drop(is_syncing);
            let _turn = Turn(self);
            let end = self.write_out()?;
            self.sync_log()?;
            self.synced.fetch_max(end, Ordering::Release);
        }
        Ok(())
    }
}

/// The turn of the one who syncs; over when it is dropped.
struct Turn<'a, F: File>(&'a Journal<F>);

impl<F: File> Drop for Turn<'_, F> {
    fn drop(&mut self) {
        *self.0.is_syncing.lock() = false;
        self.0.synced_more.notify_all();
    }
}
