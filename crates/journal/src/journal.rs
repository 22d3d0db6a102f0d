//! The journal: the log, the checkpoint and the memory that the base is loaded into, and the order in which they are
//! used.

use std::sync::Arc;

use pmem::MediumError;

use crate::ahead::Segments;
use crate::buffer::{Append, Appender, NoSpaceReason};
use crate::checkpoint::Checkpointer;
use crate::dirty::DirtyPages;
use crate::durable::Durable;
use crate::error::full_or_failed;
use crate::file::Files;
use crate::frame::ENTRY_HEADER_BYTES;
use crate::guarded::Guarded;
use crate::health::Health;
use crate::loading::{Loader, Pager};
use crate::log::Log;
use crate::opened::{OpenedLog, Opening};
use crate::redo::Redo;
use crate::region::Region;
use crate::requests::Requests;
use crate::slots::SlotTable;
use crate::writer::LogWriter;
use crate::{File, JournalOptions, canary};

/// The parts of a journal, which its medium and its threads share.
#[derive(Debug)]
pub(crate) struct Journal<F> {
    pub(crate) options: JournalOptions,
    pub(crate) opening: Opening,
    pub(crate) health: Arc<Health>,
    pub(crate) log: Log<F>,
    pub(crate) checkpointer: Checkpointer<F>,
    pub(crate) loader: Loader<F>,
}

impl<F: File> Journal<F> {
    /// Creates the journal of a log, and of a base whose first bytes lack the entries of `redo`.
    pub(crate) fn new(
        files: Files<F>,
        region: Region,
        (base_bytes, redo): (u64, Redo),
        opened: OpenedLog,
        opening: Opening,
        options: JournalOptions,
    ) -> Self {
        let OpenedLog { identity, slots, writer, capacity_bytes } = opened;
        let unmarked = files.base.breaks(canary::REPLAYED_PAGES_UNMARKED);
        let dirty = if unmarked { DirtyPages::default() } else { redo.pages() };
        let slots = Arc::new(SlotTable::new(slots));
        let requests = Arc::new(Requests::new(options.background.then_some(options.sync_interval)));
        let health = Arc::new(Health::new(&slots, &requests));
        let [base, log] = [files.base, files.log].map(|file| Arc::new(Guarded::new(file, &health)));
        let (appender, durable) = (Appender::new(writer.region_bytes, dirty), Durable::new(writer.region_bytes));
        let segments = Segments::new(&log, &slots, capacity_bytes, identity, options);
        let writer = LogWriter::new([&log, &base], &requests, segments, writer, options);
        Journal {
            options,
            opening,
            health,
            log: Log::new(log, appender, writer, durable, requests, options.level),
            checkpointer: Checkpointer::new(Arc::clone(&base)),
            loader: Loader::new(base, region, (base_bytes, redo), &options),
        }
    }

    /// Returns the buffer, locked, with space for entries of `len_bytes` together; `None` on a poisoned log. Writes
    /// out entries that are in the way. Waits for a checkpoint if no segment is free in addition to the one that is
    /// written, or if the log is ahead of the checkpoint. So no writer waits for a checkpoint, and a checkpoint can
    /// wait for writers.
    #[inline]
    pub(crate) fn reserve(&self, entry_count: usize, len_bytes: usize) -> Option<Append<'_>> {
        let wanted_bytes = entry_count * ENTRY_HEADER_BYTES + len_bytes.next_multiple_of(8);
        loop {
            self.health.check().ok()?;
            match self.log.reserve(wanted_bytes) {
                Ok(append) => return Some(append),
                Err(NoSpaceReason::Frame) => self.log.write_out_to_sync().map(drop),
                Err(NoSpaceReason::Segment) => self.await_spare(),
                Err(NoSpaceReason::Pace) => self.await_pace(),
            }
            .ok()?;
        }
    }

    /// Waits until a segment is free.
    #[cold]
    fn await_spare(&self) -> Result<(), MediumError> {
        if self.options.background { self.log.segments().await_spare() } else { self.checkpoint().map(drop) }
    }

    /// Waits until the log is no longer ahead of the checkpoint in progress.
    #[cold]
    fn await_pace(&self) -> Result<(), MediumError> {
        let table = self.log.segments().slots();
        let mut slots = table.lock();
        while self.log.appender().appended() > table.limit() {
            self.health.check()?;
            table.wait(&mut slots);
        }
        Ok(())
    }

    /// Waits, before an operation pins itself, until there is memory for it. Waits for nothing if the region has no
    /// limit of memory, or the thread is already pinned.
    #[inline]
    pub(crate) fn admit(&self) {
        if let Some(pager) = self.loader.pager().filter(|_| !epoch::is_pinned()) {
            self.await_memory(pager);
        }
    }

    /// Like [`Journal::admit`], for an operation that writes: also waits until enough pages are clean, and for space in
    /// the log. So a thread that is pinned hardly ever waits for a checkpoint.
    #[inline]
    pub(crate) fn admit_write(&self) {
        if let Some(pager) = self.loader.pager().filter(|_| self.options.writable && !epoch::is_pinned()) {
            self.await_clean(pager);
            self.await_memory(pager);
        }
    }

    #[cold]
    fn await_memory(&self, pager: &Pager) {
        if self.options.background { pager.await_memory() } else { while self.loader.evict() > 0 {} }
    }

    #[cold]
    fn await_clean(&self, pager: &Pager) {
        // A failure ends writing, and the write reports it.
        let _ = match self.options.background {
            true => {
                pager.await_clean();
                if self.log.segments().slots().has_spare() { Ok(()) } else { self.await_spare() }
            }
            false if pager.wants_checkpoint() => self.checkpoint().map(drop),
            false => Ok(()),
        };
    }

    /// Requests a checkpoint because pages have to become clean.
    pub(crate) fn ask_for_clean_pages(&self) {
        let table = self.log.segments().slots();
        table.lock().is_memory_wanted = true;
        table.notify();
    }

    /// Applies the sealed segments; returns false if there were none. The caller does not hold the writer.
    pub(crate) fn checkpoint(&self) -> Result<bool, MediumError> {
        self.checkpointer.checkpoint(&self.log, &self.loader, self.options.background)
    }

    /// Applies as much of the log as possible.
    pub(crate) fn checkpoint_all(&self) -> Result<(), MediumError> {
        self.log.write_out_to_sync()?;
        while !self.log.seal_early()? {
            self.checkpoint()?;
        }
        self.checkpoint().map(drop)
    }

    /// Lengthens the region. The base first, durably; then memory; then the log records the length. A file that is
    /// longer than the log records (after a crash, or a failed sync) may not be that long durably.
    pub(crate) fn extend(&self, from_bytes: u64, to_bytes: u64) -> Result<(), MediumError> {
        self.checkpointer.lengthen_base(from_bytes..to_bytes)?;
        let region = self.loader.region();
        region.memory.extend(from_bytes..to_bytes).map_err(full_or_failed(to_bytes))?;
        self.loader.pager().into_iter().for_each(|pager| pager.add_fresh(from_bytes..to_bytes));
        match self.reserve(1, 0) {
            Some(mut append) => append.push_growth(to_bytes),
            None => self.health.check()?,
        }
        region.lengthen(to_bytes);
        Ok(())
    }
}
