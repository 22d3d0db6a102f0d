//! The log: entries that were appended become durable, for the threads that wait for them.
//!
//! Group commit: one of the threads that wait for a sync makes it, for every thread that appended before the sync
//! began. Module `turns` decides which thread, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Durability, MediumError, Waited};

use crate::ahead::Segments;
use crate::buffer::{Append, Appender, NoSpaceReason};
use crate::durable::{Durable, FIRST_POSITION, Written};
use crate::guarded::Guarded;
use crate::options::frame_bytes_max;
use crate::requests::Requests;
use crate::tail::Extent;
use crate::turns::Turns;
use crate::writer::LogWriter;
use crate::{File, canary};

/// The position of entries that the log did not accept.
const NEVER: u64 = u64::MAX;

/// The stages of the log. Positions count the bytes of all entries ever appended, from [`FIRST_POSITION`] on.
#[derive(Debug)]
pub(crate) struct Log<F> {
    file: Arc<Guarded<F>>,
    /// The level at which callers wait, if they name none.
    level: Durability,
    appender: Appender,
    writer: LogWriter<F>,
    durable: Durable,
    /// Decides which of the waiting threads syncs for all of them.
    turns: Turns,
    /// Requests to the syncing threads.
    requests: Arc<Requests>,
    /// The position up to which a frame that is itself durable records that entries are durable.
    proved: AtomicU64,
    /// The latest position for which a caller did not wait.
    deferred: AtomicU64,
}

impl<F: File> Log<F> {
    /// Creates the state without entries, behind those that `writer` has.
    pub(crate) fn new(
        file: Arc<Guarded<F>>,
        appender: Appender,
        writer: LogWriter<F>,
        durable: Durable,
        requests: Arc<Requests>,
        level: Durability,
    ) -> Log<F> {
        Log {
            file,
            level,
            appender,
            writer,
            durable,
            turns: Turns::default(),
            requests,
            proved: FIRST_POSITION.into(),
            deferred: 0.into(),
        }
    }

    #[inline(always)]
    pub(crate) fn file(&self) -> &Guarded<F> {
        &self.file
    }

    #[inline(always)]
    pub(crate) fn appender(&self) -> &Appender {
        &self.appender
    }

    pub(crate) fn writer(&self) -> &LogWriter<F> {
        &self.writer
    }

    pub(crate) fn segments(&self) -> &Segments<F> {
        self.writer.segments()
    }

    pub(crate) fn durable(&self) -> &Durable {
        &self.durable
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns the level at which callers wait, if they name none.
    #[inline(always)]
    pub(crate) fn level(&self) -> Durability {
        self.level
    }

    /// Returns the buffer with space for `wanted_bytes`, or the reason why there is none.
    #[inline]
    pub(crate) fn reserve(&self, wanted_bytes: usize) -> Result<Append<'_>, NoSpaceReason> {
        let segments = self.writer.segments();
        self.appender.reserve(wanted_bytes, segments.slots(), || frame_bytes_max(segments.capacity_bytes()))
    }

    /// Returns the position up to which the log has the caller's entries. A poisoned log accepts nothing: such
    /// entries have no position, and are never durable.
    pub(crate) fn taken_in(&self) -> u64 {
        let position = self.appender.appended();
        if self.file.health().check().is_ok() { position } else { NEVER }
    }

    /// Returns true if entries up to `position` are durable. A later failure does not change that.
    #[inline(always)]
    pub(crate) fn is_synced(&self, position: u64) -> bool {
        self.durable.synced() >= position
    }

    /// Returns true if the operating system has the entries up to `position`. After a failure, only synced entries
    /// count.
    #[inline(always)]
    pub(crate) fn is_written(&self, position: u64) -> bool {
        self.is_synced(position) || self.writer.written() >= position && self.file.health().check().is_ok()
    }

    /// Writes the entries appended before this call, unless another thread has; returns the written part.
    pub(crate) fn write_out(&self, extent: Extent) -> Result<Written, MediumError> {
        self.writer.write_out(&self.appender, &self.durable, extent)
    }

    /// Writes them for a thread that syncs immediately.
    pub(crate) fn write_out_to_sync(&self) -> Result<Written, MediumError> {
        self.write_out(self.writer.to_be_synced())
    }

    /// Ends a segment that is not full, if another one is free; returns true if it did.
    pub(crate) fn seal_early(&self) -> Result<bool, MediumError> {
        self.writer.seal_early(&self.durable)
    }

    /// Waits until the log is as durable up to `position` as `level` requires.
    pub(crate) fn wait(&self, position: u64, level: Durability) -> Result<(), MediumError> {
        match self.demanded(level) {
            Durability::Power if !self.file.file().breaks(canary::WAIT_BEFORE_SYNC) => self.wait_synced(position),
            _ => self.wait_written(position),
        }
    }

    /// Returns the level that a write at `level` has to wait for. At `buffered`, it waits for a sync if older
    /// writes have waited too long for theirs.
    pub(crate) fn demanded(&self, level: Durability) -> Durability {
        let is_held = level == Durability::Buffered && self.requests.is_overdue();
        if is_held { Durability::Power } else { level }
    }

    /// Waits until the operating system has the entries up to `position`.
    pub(crate) fn wait_written(&self, position: u64) -> Result<(), MediumError> {
        if self.is_synced(position) {
            return Ok(());
        }
        if !self.is_written(position) {
            self.write_out(Extent::Cached)?;
        }
        // Also if another thread has written it out: that thread may only have needed space, and may request no
        // sync until it ends.
        if self.level == Durability::Buffered {
            self.requests.soon();
        }
        self.file.health().check()
    }

    /// Waits until the log is durable up to `position`.
    pub(crate) fn wait_synced(&self, position: u64) -> Result<(), MediumError> {
        if self.is_synced(position) {
            return Ok(());
        }
        let waiting = self.turns.join();
        if let Some(_turn) = waiting.turn(|| self.is_synced(position) || self.file.health().check().is_err()) {
            let written = self.write_out_to_sync()?;
            self.writer.sync()?;
            self.durable.note(written);
        }
        if self.is_synced(position) { Ok(()) } else { self.file.health().check() }
    }

    /// Returns `Durable` if the log is as durable up to `position` as its level requires. Otherwise notes that the
    /// caller waits later.
    pub(crate) fn acknowledge_now(&self, position: u64) -> Result<Waited, MediumError> {
        let is_done = match self.level {
            Durability::Power => self.is_synced(position),
            Durability::Buffered | Durability::Process => self.is_written(position),
        };
        if is_done {
            return Ok(Waited::Durable);
        }
        self.file.health().check()?;
        self.deferred.fetch_max(position, Ordering::Release);
        Ok(Waited::Deferred)
    }

    /// Returns the latest position for which a caller did not wait.
    pub(crate) fn deferred(&self) -> u64 {
        self.deferred.load(Ordering::Acquire)
    }

    /// Waits until the log is durable up to `position` and itself records that: then no damage at its end can
    /// remove any of that unnoticed.
    pub(crate) fn wait_proved(&self, position: u64) -> Result<(), MediumError> {
        if self.proved.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        self.wait_synced(position)?;
        let (before, end) = self.appender.append_mark();
        self.wait_synced(end)?;
        // The mark itself needs no proof.
        self.proved.fetch_max(if before == position { end } else { position }, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
