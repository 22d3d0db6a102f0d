//! The shared state of the medium and its threads: the files, all stages of the log, and whether the journal still
//! works.

use std::io;
use std::sync::atomic::Ordering;

use pmem::MediumError;

use crate::buffer::Buffer;
use crate::canary;
use crate::dirty::DirtyPages;
use crate::file::Files;
use crate::lives::{Append, Checkpoints, Ending, Segments};
use crate::loading::Loading;
use crate::log::{Log, Opening};
use crate::region::Region;
use crate::requests::Requests;
use crate::writer::Written;
use crate::{File, JournalOptions};

/// The position of entries that the log did not accept.
const NEVER: u64 = u64::MAX;

/// The state; see the module's head. Positions count the bytes of all entries ever appended, from
/// [`FIRST_POSITION`](crate::log::FIRST_POSITION) on.
#[derive(Debug)]
pub(crate) struct Journal<F> {
    pub(crate) base: F,
    pub(crate) log: F,
    pub(crate) region: Region,
    pub(crate) options: JournalOptions,
    pub(crate) identity: [u8; 16],
    pub(crate) opening: Opening,
    /// The part of the base that is in memory.
    pub(crate) loading: Loading,

    pub(crate) append: Append,
    pub(crate) segments: Segments,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) ending: Ending,
    /// Requests to the syncing threads.
    pub(crate) requests: Requests,
}

impl<F: File> Journal<F> {
    pub(crate) fn new(
        files: Files<F>,
        region: Region,
        loading: Loading,
        dirty: DirtyPages,
        log: Log,
        opening: Opening,
        options: JournalOptions,
    ) -> Self {
        let buffer = Buffer::new(log.writer.region_bytes, dirty);
        Journal {
            base: files.base,
            log: files.log,
            region,
            options,
            identity: log.identity,
            opening,
            loading,
            append: Append::new(log.writer, buffer),
            checkpoints: Checkpoints::new(log.slots.recycled),
            segments: Segments::new(log.slots, log.capacity_bytes),
            ending: Ending::default(),
            requests: Requests::default(),
        }
    }

    /// # Errors
    /// [`MediumError::Poisoned`] once something could not be written or synced.
    #[inline(always)]
    pub(crate) fn healthy(&self) -> Result<(), MediumError> {
        match self.ending.poison.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => Err(MediumError::Poisoned { errno }),
        }
    }

    /// Returns the position up to which the log has the caller's entries. A poisoned log accepts nothing: such
    /// entries have no position, and are never durable.
    pub(crate) fn taken_in(&self) -> u64 {
        let position = self.append.appended.load(Ordering::Acquire);
        if self.healthy().is_ok() { position } else { NEVER }
    }

    /// Returns true if entries up to `position` are durable. A later failure does not change that.
    #[inline(always)]
    pub(crate) fn is_synced(&self, position: u64) -> bool {
        self.append.synced.load(Ordering::Acquire) >= position
    }

    /// Returns true if the operating system has the entries up to `position`. After a failure, only synced entries
    /// count.
    #[inline(always)]
    pub(crate) fn is_written(&self, position: u64) -> bool {
        self.is_synced(position) || self.append.written.load(Ordering::Acquire) >= position && self.healthy().is_ok()
    }

    /// Ends writing: from now on nothing becomes durable. Returns the error of the first failure.
    #[cold]
    pub(crate) fn poison(&self, error: &io::Error) -> MediumError {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let first = self.ending.poison.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Acquire);
        // Wakes threads that wait for a segment, because none will come. Threads that wait for a sync are woken
        // when the turn ends.
        drop(self.segments.slots.lock());
        self.segments.slots_changed.notify_all();
        self.requests.now();
        MediumError::Poisoned { errno: first.err().unwrap_or(errno) }
    }

    /// Makes writes to the log durable. They are worth nothing without the base.
    pub(crate) fn sync_log(&self) -> Result<(), MediumError> {
        self.sync(&self.log)?;
        self.base.check_in_place().map_err(|error| self.poison(&error))?;
        self.append.sync_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Makes writes to the base durable.
    pub(crate) fn sync_base(&self) -> Result<(), MediumError> {
        self.sync(&self.base)
    }

    /// Never repeated after a failure: the kernel has dropped the pages that it could not write.
    fn sync(&self, file: &F) -> Result<(), MediumError> {
        self.healthy()?;
        let synced = file.sync();
        let synced = if file.breaks(canary::SYNC_RETRIED) { synced.or_else(|_| file.sync()) } else { synced };
        synced.map_err(|error| self.poison(&error))
    }

    /// Records that everything in `written` was synced after it was written.
    pub(crate) fn note_synced(&self, written: Written) {
        self.append.mark.fetch_max(written.next, Ordering::Release);
        self.append.synced_region_bytes.fetch_max(written.region_bytes, Ordering::Release);
        self.append.synced.fetch_max(written.end, Ordering::Release);
    }

    pub(crate) fn note_written(&self, bytes: usize) {
        self.append.synced_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the number of syncs of the log, and of bytes written to it, so far.
    pub(crate) fn log_figures(&self) -> (u64, u64) {
        (self.append.sync_count.load(Ordering::Relaxed), self.append.synced_bytes.load(Ordering::Relaxed))
    }
}
