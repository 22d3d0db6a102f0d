//! The work before the first write to an opened log, and after the last.

use pmem::MediumError;

use crate::File;
use crate::checkpoint::RUN_BYTES_MAX;
use crate::error::{JournalError, Which};
use crate::journal::Journal;
use crate::slots::Sealed;

impl<F: File> Journal<F> {
    /// Steps 3 to 5 of opening.
    pub(crate) fn go_on_behind_the_end(&self, unproved: &[Sealed]) -> Result<(), JournalError> {
        let (log, writer, segments) = (&self.log, self.log.writer(), self.log.segments());
        let replayed = log.appender().dirty_runs(RUN_BYTES_MAX);
        let settled = writer.settle_tail(unproved, log.durable());
        settled.map_err(JournalError::medium(Which::Log, "settle the end of"))?;
        let settled = self.checkpointer.settle_base(replayed);
        settled.map_err(JournalError::medium(Which::Base, "settle the replayed pages of"))?;
        segments.keep_first_space().map_err(JournalError::medium(Which::Log, "take space for"))?;
        segments.keep_spare().map_err(JournalError::medium(Which::Log, "lengthen"))?;
        writer.mark_tail().map_err(JournalError::medium(Which::Log, "mark the end of"))?;
        self.free_segment().map_err(JournalError::medium(Which::Base, "apply the log to"))?;
        writer.begin_after_all(log.durable()).map_err(JournalError::medium(Which::Log, "go on in"))
    }

    /// Runs a checkpoint, because no thread does it yet. Nothing was appended, so it syncs no log.
    fn free_segment(&self) -> Result<(), MediumError> {
        if self.log.segments().slots().has_spare() { Ok(()) } else { self.checkpoint().map(drop) }
    }

    /// Makes everything durable, brings the base up to date, and leaves a log that needs no replay.
    pub(crate) fn shut(&self) -> Result<(), MediumError> {
        let (log, writer, segments) = (&self.log, self.log.writer(), self.log.segments());
        let is_empty = writer.is_empty();
        let end = log.appender().appended_by_now();
        if is_empty && log.is_synced(end) {
            return Ok(());
        }
        // Before the segment is sealed: then the checkpoint has nothing to append to it.
        log.wait_proved(end)?;
        writer.seal_last(log.durable());
        self.checkpoint()?;
        segments.slots().lock().use_first();
        writer.begin_after_all(log.durable())?;
        self.checkpointer.spaces().punch(|| segments.replayed_from());
        writer.shorten();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
