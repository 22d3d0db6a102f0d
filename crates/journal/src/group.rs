//! Group commit: of all who wait for a sync one makes it, for everybody who appended before it began. Who, and when, is
//! `turns`' affair.

use std::sync::atomic::Ordering;

use pmem::{Canary, Durability, MediumError};

use crate::File;
use crate::journal::Journal;
use crate::tail::Extent;

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
            self.write_out(Extent::Cached)?;
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
        let is_done = || self.synced.load(Ordering::Acquire) >= position || self.healthy().is_err();
        if is_done() {
            return self.healthy();
        }
        let waiting = self.turns.join();
        if let Some(_turn) = waiting.turn(is_done) {
            let end = self.write_out(self.to_be_synced())?;
            self.sync_log()?;
            self.synced.fetch_max(end, Ordering::Release);
        }
        self.healthy()
    }
}
