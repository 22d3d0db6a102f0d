//! What comes before the first write to an opened log, and after the last.

use pmem::{Canary, MediumError};

use crate::File;
use crate::journal::Journal;
use crate::recover::rewrite_tail;

impl<F: File> Journal<F> {
    /// Steps 3 and 4 of opening.
    pub(crate) fn go_on_behind_the_end(&self) -> Result<(), MediumError> {
        let newest = self.slots.lock().sealed.back().cloned().expect("an opened log has a segment");
        if !self.log.breaks(Canary::TailNotRewritten) {
            rewrite_tail(&self.log, &newest, &self.options).map_err(|error| self.poison(&error))?;
        }
        let is_out_of_slots = {
            let slots = self.slots.lock();
            slots.free.is_empty() && slots.count >= self.options.segment_count_max()
        };
        if is_out_of_slots {
            // No thread does it yet.
            self.checkpoint()?;
        }
        self.begin_segment(&mut self.writer.lock())
    }

    /// Everything durable, the base up to date, and a log that needs no replay.
    pub(crate) fn shut(&self) -> Result<(), MediumError> {
        let end = self.write_out(self.to_be_synced())?;
        let mut writer = self.writer.lock();
        let is_empty = writer.sequence == writer.first_sequence && self.slots.lock().sealed.is_empty();
        if is_empty {
            return Ok(());
        }
        self.seal(&writer)?;
        self.synced.fetch_max(end, std::sync::atomic::Ordering::Release);
        self.checkpoint()?;
        self.begin_segment(&mut writer)?;
        self.punch_discarded();
        Ok(())
    }
}
