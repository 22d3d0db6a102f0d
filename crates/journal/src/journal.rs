//! What the medium and its threads share: the files, the log in all its stages, and whether it still works.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use pmem::MediumError;

use crate::buffer::Buffer;
use crate::canary;
use crate::checkpoint::Checkpoint;
use crate::dirty::DirtyPages;
use crate::discards::Discards;
use crate::file::Files;
use crate::loading::Loading;
use crate::log::{FIRST_POSITION, Log, Opening};
use crate::published::Published;
use crate::region::Region;
use crate::requests::Requests;
use crate::slots::Slots;
use crate::turns::Turns;
use crate::writer::{Writer, Written};
use crate::{File, JournalOptions};

/// The position of what the log has not taken in.
const NEVER: u64 = u64::MAX;

/// See the module. Positions count the bytes of entries that were ever appended, from [`FIRST_POSITION`] on.
#[derive(Debug)]
pub(crate) struct Journal<F> {
    pub(crate) base: F,
    pub(crate) log: F,
    pub(crate) region: Region,
    pub(crate) options: JournalOptions,
    pub(crate) identity: [u8; 16],
    pub(crate) opening: Opening,
    /// What of the base is in memory.
    pub(crate) loading: Loading,

    /// What was appended and not taken by a writer.
    pub(crate) buffer: Mutex<Buffer>,
    /// Up to where entries were appended; changes under the buffer's lock.
    pub(crate) appended: AtomicU64,
    /// Its holder writes frames.
    pub(crate) writer: Mutex<Writer>,
    /// Up to where entries are in the operating system's hands.
    pub(crate) written: AtomicU64,
    /// Which of the waiting threads syncs for all of them.
    pub(crate) turns: Turns,
    /// Up to where entries are durable.
    pub(crate) synced: AtomicU64,
    /// All frames before this number are durable.
    pub(crate) mark: AtomicU64,
    /// The region's length with all frames before that number, at least.
    pub(crate) synced_region_bytes: AtomicU64,
    /// Up to where a frame that is durable itself says that entries are.
    pub(crate) proved: AtomicU64,
    /// Up to where callers went on without waiting, at most.
    pub(crate) deferred: AtomicU64,
    /// Where words were published that may not be durable.
    pub(crate) published: Published,
    /// What the syncing threads are to do.
    pub(crate) requests: Requests,

    /// How much of each segment has space, and may be written.
    pub(crate) room_bytes: AtomicU64,
    /// Once the segment is filled so far something is to be done before it is full (`ahead`).
    pub(crate) ahead_at: AtomicU64,
    /// Its holder makes room for what comes next.
    pub(crate) ahead: Mutex<()>,
    pub(crate) slots: Mutex<Slots>,
    /// Whether one is free; changes with them.
    pub(crate) has_spare: AtomicBool,
    /// A segment was sealed, or can be used again, or it is time to stop.
    pub(crate) slots_changed: Condvar,
    /// Replay begins at this position or behind it, by the newest header.
    pub(crate) replayed_from: AtomicU64,
    /// Space of the base that is to be given back.
    pub(crate) discards: Mutex<Discards>,
    /// One checkpoint at a time.
    pub(crate) checkpoint: Mutex<Checkpoint>,

    /// The error number of the failure that ended writing, or 0.
    poison: AtomicI32,
    pub(crate) is_closing: AtomicBool,
    /// How the end went, once it has come.
    pub(crate) closed: OnceLock<Result<(), MediumError>>,
    synced_bytes: AtomicU64,
    sync_count: AtomicU64,
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
        Journal {
            base: files.base,
            log: files.log,
            region,
            loading,
            options,
            identity: log.identity,
            opening,
            mark: AtomicU64::new(0),
            synced_region_bytes: AtomicU64::new(log.writer.region_bytes),
            proved: AtomicU64::new(FIRST_POSITION),
            buffer: Mutex::new(Buffer::new(log.writer.region_bytes, dirty)),
            appended: AtomicU64::new(FIRST_POSITION),
            writer: Mutex::new(log.writer),
            written: AtomicU64::new(FIRST_POSITION),
            turns: Turns::default(),
            synced: AtomicU64::new(FIRST_POSITION),
            deferred: AtomicU64::new(0),
            published: Published::new(),
            requests: Requests::default(),
            room_bytes: AtomicU64::new(log.room_bytes),
            ahead_at: AtomicU64::new(0),
            ahead: Mutex::default(),
            has_spare: AtomicBool::new(log.slots.has_spare()),
            replayed_from: AtomicU64::new(log.slots.recycled),
            slots: Mutex::new(log.slots),
            slots_changed: Condvar::new(),
            discards: Mutex::new(Discards::default()),
            checkpoint: Mutex::default(),
            poison: AtomicI32::new(0),
            is_closing: AtomicBool::new(false),
            closed: OnceLock::new(),
            synced_bytes: AtomicU64::new(0),
            sync_count: AtomicU64::new(0),
        }
    }

    /// # Errors
    /// [`MediumError::Poisoned`] once something could not be written or synced.
    #[inline(always)]
    pub(crate) fn healthy(&self) -> Result<(), MediumError> {
        match self.poison.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => Err(MediumError::Poisoned { errno }),
        }
    }

    /// Up to where the log has what the caller appended. A poisoned log takes nothing in: what was appended to it has no
    /// position, and is never durable.
    pub(crate) fn taken_in(&self) -> u64 {
        let position = self.appended.load(Ordering::Acquire);
        if self.healthy().is_ok() { position } else { NEVER }
    }

    /// Whether entries up to `position` are durable. Once they are, no failure changes that.
    #[inline(always)]
    pub(crate) fn is_synced(&self, position: u64) -> bool {
        self.synced.load(Ordering::Acquire) >= position
    }

    /// Whether entries up to `position` are in the operating system's hands: after a failure none that was not synced.
    #[inline(always)]
    pub(crate) fn is_written(&self, position: u64) -> bool {
        self.is_synced(position) || self.written.load(Ordering::Acquire) >= position && self.healthy().is_ok()
    }

    /// Ends writing: from now on nothing becomes durable. The first failure is the one that is told.
    #[cold]
    pub(crate) fn poison(&self, error: &io::Error) -> MediumError {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let first = self.poison.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Acquire);
        // Whoever waits for a segment waits in vain. Who waits for a sync is woken when the turn ends.
        drop(self.slots.lock());
        self.slots_changed.notify_all();
        self.requests.now();
        MediumError::Poisoned { errno: first.err().unwrap_or(errno) }
    }

    /// Makes durable what was written to the log.
    pub(crate) fn sync_log(&self) -> Result<(), MediumError> {
        self.sync(&self.log)?;
        self.sync_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Makes durable what was written to the base.
    pub(crate) fn sync_base(&self) -> Result<(), MediumError> {
        self.sync(&self.base)
    }

    /// Never tried again: the kernel has forgotten what it could not write.
    fn sync(&self, file: &F) -> Result<(), MediumError> {
        self.healthy()?;
        let synced = file.sync();
        let synced = if file.breaks(canary::SYNC_RETRIED) { synced.or_else(|_| file.sync()) } else { synced };
        synced.map_err(|error| self.poison(&error))
    }

    /// All of it was synced after it was written.
    pub(crate) fn note_synced(&self, written: Written) {
        self.mark.fetch_max(written.next, Ordering::Release);
        self.synced_region_bytes.fetch_max(written.region_bytes, Ordering::Release);
        self.synced.fetch_max(written.end, Ordering::Release);
    }

    pub(crate) fn note_written(&self, bytes: usize) {
        self.synced_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Syncs of the log, and bytes written to it, so far.
    pub(crate) fn log_figures(&self) -> (u64, u64) {
        (self.sync_count.load(Ordering::Relaxed), self.synced_bytes.load(Ordering::Relaxed))
    }
}
