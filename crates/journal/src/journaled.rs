//! The journaled medium: creating, opening and closing it.

use std::fmt;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use pmem::{Durability, MediumError};
use pmem_os::Memory;

use crate::ahead::{SEGMENT_COUNT, write_header, write_zeros};
use crate::durable::FIRST_POSITION;
use crate::error::{JournalError, Which};
use crate::file::Files;
use crate::journal::Journal;
use crate::layout::FRAMES_START_BYTES;
use crate::opened::{OpenedLog, Opening};
use crate::recover::{self, Recovered};
use crate::redo::Redo;
use crate::region::{PAGE_BYTES, Region};
use crate::segment::{Header, VERSION};
use crate::slots::Slots;
use crate::threads::Threads;
use crate::writer::Writer;
use crate::{Acknowledger, File, JournalOptions};

/// The progress of an opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenProgress {
    /// The log is read.
    Replaying {
        /// Segments that are done.
        done: u64,
        /// Segments to be replayed.
        total: u64,
    },
}

/// A region in memory that a log and a base make durable; see the crate's head.
pub struct Journaled<F: File> {
    /// First, so that no thread works in the background while the other fields are dropped.
    threads: Threads,
    pub(crate) journal: Arc<Journal<F>>,
    /// Held while the region is made longer.
    growing: Mutex<()>,
}

impl<F: File> Journaled<F> {
    /// Creates a journal of a region of at least `region_bytes` zeros. The files are new, or remains of an
    /// unfinished creation.
    ///
    /// # Errors
    /// [`JournalError::Option`] for bad options; [`JournalError::Io`], [`JournalError::Addresses`] or
    /// [`JournalError::Memory`] if the operating system refuses.
    pub fn create(
        files: Files<F>,
        region_bytes: u64,
        identity: [u8; 16],
        options: JournalOptions,
    ) -> Result<Journaled<F>, JournalError> {
        options.check()?;
        let Files { base, log } = &files;
        let len_bytes = region_bytes.max(1).next_multiple_of(PAGE_BYTES);
        log.truncate(0).and_then(|()| log.sync()).map_err(JournalError::io(Which::Log, "empty"))?;
        base.truncate(0).map_err(JournalError::io(Which::Base, "empty"))?;
        base.allocate(0..len_bytes).and_then(|()| base.sync()).map_err(JournalError::io(Which::Base, "allocate"))?;
        let slots =
            Slots { count: SEGMENT_COUNT, free: vec![1], begun: (1, 1), recycled: FIRST_POSITION, ..Slots::default() };
        let header = Header {
            version: VERSION,
            segment_bytes: options.segment_bytes as u32,
            identity,
            ordinal: 1,
            mark: 1,
            is_first: true,
            oldest: 1,
            start: 1,
            region_bytes: len_bytes,
            salt: options.salt,
        };
        let capacity_bytes = options.first_space_bytes();
        let mut starts = (0..SEGMENT_COUNT).map(|slot| slot * options.segment_bytes);
        log.truncate(SEGMENT_COUNT * options.segment_bytes)
            .and_then(|()| starts.try_for_each(|start| write_zeros(log, start..start + capacity_bytes)))
            .and_then(|()| log.sync())
            .and_then(|()| write_header(log, 0, &header))
            .and_then(|()| log.sync())
            .map_err(JournalError::io(Which::Log, "write"))?;
        let writer = Writer {
            ordinal: 1,
            tag: header.tag(),
            sequence: 1,
            at_bytes: FRAMES_START_BYTES,
            region_bytes: len_bytes,
            ..Writer::default()
        };
        let region = reserve(len_bytes, &options)?;
        let opened = OpenedLog { identity, slots, writer, capacity_bytes };
        let journal = Journal::new(files, region, (0, Redo::default()), opened, Opening::default(), options);
        journal.loader.finish();
        journal.loader.pager().into_iter().for_each(|pager| pager.add_fresh(0..len_bytes));
        journal.log.segments().note_begun();
        Journaled::start(journal)
    }

    /// Opens a journal: reads its log. The base is read later, as needed, and by [`Acknowledger::load_rest`].
    ///
    /// # Errors
    /// [`JournalError::Damaged`] or [`JournalError::Gap`] if the log is damaged (see [`Journaled::salvage`]), and
    /// the other variants; the files' content stays the same.
    pub fn open(
        files: Files<F>,
        options: JournalOptions,
        progress: &(dyn Fn(OpenProgress) + Sync),
    ) -> Result<Journaled<F>, JournalError> {
        options.check()?;
        let start = Instant::now();
        let mut replaying = |done, total| progress(OpenProgress::Replaying { done, total });
        let recovered = recover::replay(&files.log, &options, &mut replaying)?;
        match recovered.damage.into_iter().next() {
            Some(first) => Err(first),
            None => Journaled::open_recovered(files, Recovered { damage: Vec::new(), ..recovered }, options, start),
        }
    }

    /// Opens, for reading, the remains of a journal that [`Journaled::open`] refuses: the base, with all intact
    /// frames applied in memory. Also returns the missing parts of the log.
    ///
    /// # Errors
    /// If the files cannot be read, the journal is a newer program's, or the base is shorter than the log requires.
    pub fn salvage(
        files: Files<F>,
        options: JournalOptions,
    ) -> Result<(Journaled<F>, Vec<JournalError>), JournalError> {
        let options = JournalOptions { writable: false, ..options };
        options.check()?;
        let start = Instant::now();
        let mut recovered = recover::replay(&files.log, &options, &mut |_, _| ())?;
        let damage = mem::take(&mut recovered.damage);
        if !damage.is_empty() {
            // A missing frame may have made the region longer.
            let base_bytes = files.base.len().map_err(JournalError::io(Which::Base, "examine"))?;
            let region_bytes = &mut recovered.log.writer.region_bytes;
            *region_bytes = (*region_bytes).max(base_bytes - base_bytes % PAGE_BYTES);
        }
        Ok((Journaled::open_recovered(files, recovered, options, start)?, damage))
    }

    fn open_recovered(
        files: Files<F>,
        recovered: Recovered,
        options: JournalOptions,
        start: Instant,
    ) -> Result<Journaled<F>, JournalError> {
        let Recovered { log, replayed, unproved, .. } = recovered;
        let base_bytes = files.base.len().map_err(JournalError::io(Which::Base, "examine"))?;
        let region_bytes = log.writer.region_bytes;
        if base_bytes < region_bytes {
            return Err(JournalError::Truncated { base_bytes, region_bytes });
        }
        let redo = Redo::of(replayed, options.unit_bytes(), region_bytes)?;
        let opening = Opening {
            replayed_bytes: log.slots.sealed.iter().map(|sealed| sealed.end_bytes).sum(),
            replay_time: start.elapsed(),
        };
        let region = reserve(region_bytes, &options)?;
        let journal = Journal::new(files, region, (region_bytes, redo), log, opening, options);
        if options.writable {
            journal.go_on_behind_the_end(&unproved)?;
        }
        Journaled::start(journal)
    }

    fn start(journal: Journal<F>) -> Result<Journaled<F>, JournalError> {
        let journal = Arc::new(journal);
        Ok(Journaled {
            threads: Threads::start(&journal).map_err(JournalError::io(Which::Log, "start a thread for"))?,
            journal,
            growing: Mutex::new(()),
        })
    }

    /// Returns the identity of the journal, as passed at its creation.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        self.journal.log.segments().identity()
    }

    /// Returns a handle for callers that wait for the journal themselves, or at another level.
    #[must_use]
    pub fn acknowledger(&self) -> Acknowledger<F> {
        Acknowledger::of(&self.journal)
    }

    /// Returns the reason for [`pmem::Persist::durability`], as a clause without a full stop.
    #[must_use]
    pub fn explain(&self) -> &'static str {
        match self.journal.options.level {
            Durability::Power => "journaled: a write is acknowledged once the log is synced",
            Durability::Buffered => {
                "journaled: a write is acknowledged once the kernel has it, and the log is synced at intervals; a power loss \
                 may drop the last writes, the latest first"
            }
            Durability::Process => {
                "journaled: a write is acknowledged once the kernel has it; a power loss may drop the last writes, the \
                 latest first"
            }
        }
    }

    /// Returns the number of the region's bytes that are in huge pages at this moment. Slow.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn huge_page_bytes(&self) -> io::Result<u64> {
        self.journal.loader.region().memory.huge_page_bytes()
    }

    /// Returns false in a forked child, which must not access the region: it is not mapped there. Costs one load.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.journal.loader.region().memory.in_owner()
    }

    /// Applies as much of the log to the base as possible, now.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    pub fn checkpoint(&self) -> Result<(), MediumError> {
        self.journal.checkpoint_all()
    }

    pub(crate) fn grow_to(&self, to_bytes: u64) -> Result<(), MediumError> {
        if !self.journal.options.writable {
            return Err(MediumError::ReadOnly);
        }
        if !self.in_owner() {
            return Err(MediumError::Os { errno: libc::ECHILD });
        }
        self.journal.health.check()?;
        let _alone = self.growing.lock();
        let from_bytes = self.journal.loader.region().len_bytes();
        if to_bytes <= from_bytes {
            return Ok(());
        }
        let limit_bytes = self.journal.loader.region().memory.limit_bytes().min(self.journal.options.reserve_bytes);
        let len_bytes = to_bytes.checked_next_multiple_of(PAGE_BYTES).filter(|&len| len <= limit_bytes);
        let limit = |limit_bytes| MediumError::Limit { wanted_bytes: to_bytes, limit_bytes };
        let len_bytes = len_bytes.ok_or(limit(limit_bytes))?;
        self.journal.loader.region().memory.reach(len_bytes).map_err(limit)?;
        self.journal.extend(from_bytes, len_bytes)
    }
}

impl<F: File> Drop for Journaled<F> {
    /// Makes everything durable and, if possible, leaves a log without anything to replay. [`Acknowledger::closed`]
    /// returns the result, and the program's log reports an error.
    fn drop(&mut self) {
        if !self.in_owner() {
            // The threads exist only in the parent.
            return self.threads.forget();
        }
        self.threads.stop(&self.journal);
        if self.journal.options.writable && !std::thread::panicking() {
            let closed = self.journal.shut();
            #[cfg(feature = "tracing")]
            if let Err(error) = &closed {
                tracing::error!(%error, "the end of the log could not be made durable");
            }
            self.journal.health.note_closed(closed);
        }
    }
}

impl<F: File> fmt::Debug for Journaled<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journaled")
            .field("len_bytes", &self.journal.loader.region().len_bytes())
            .finish_non_exhaustive()
    }
}

/// Reserves memory of zeros.
fn reserve(len_bytes: u64, options: &JournalOptions) -> Result<Region, JournalError> {
    let memory = Memory::reserve(options.reserve_bytes, options.kept_bytes, len_bytes, options.has_huge_pages());
    let wanted_bytes = options.kept_bytes.max(len_bytes);
    let memory = memory.map_err(|source| JournalError::Addresses { wanted_bytes, source })?;
    memory.extend(0..len_bytes).map_err(JournalError::memory(len_bytes))?;
    Ok(Region::new(memory, len_bytes, options.writable))
}

#[cfg(test)]
mod tests;
