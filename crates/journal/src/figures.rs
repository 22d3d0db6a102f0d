//! Figures that a journal reports.

use crate::journal::Journal;
use crate::loading::{Loaded, PageFigures};
use crate::opened::Opening;
use crate::{Acknowledger, File};

/// A journal's figures at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// The usable space of the log.
    pub log_bytes: u64,
    /// The largest size of the log.
    pub log_bytes_max: u64,
    /// Bytes of the log that the base lacks: an opening would replay them now.
    pub unapplied_bytes: u64,
    /// Syncs of the log since open.
    pub sync_count: u64,
    /// Bytes written to the log, and so synced sooner or later, since open.
    pub written_bytes: u64,
    /// Bytes appended that are not durable at this moment.
    pub unsynced_bytes: u64,
    /// The result of opening.
    pub opening: Opening,
    /// The progress of loading since then.
    pub loaded: Loaded,
    /// The pages of a region that may be larger than its memory ([`crate::JournalOptions::memory_bytes_max`]).
    pub pages: Option<PageFigures>,
}

impl<F: File> Acknowledger<F> {
    /// Loads all of the base into memory in the background, if the options allow threads.
    pub fn load_rest(&self) {
        self.journal().loader.load_rest();
    }

    /// Sets the memory for pages of a region that may be larger than its memory, and for the replayed log.
    pub fn set_memory_bytes(&self, memory_bytes: u64) {
        self.journal().loader.pager().into_iter().for_each(|pager| pager.set_memory_bytes(memory_bytes));
    }

    /// Returns the figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let Journal { options, opening, log, loader, .. } = self.journal();
        let (appended, synced) = (log.appender().appended(), log.durable().synced());
        let slots = log.segments().slots().lock();
        let newest_start = slots.sealed.back().map_or(slots.recycled, |sealed| sealed.end);
        Figures {
            log_bytes: slots.count * log.segments().capacity_bytes(),
            log_bytes_max: options.log_bytes_max,
            unapplied_bytes: slots.sealed.iter().map(|sealed| sealed.end_bytes).sum::<u64>()
                + appended.saturating_sub(newest_start),
            sync_count: log.file().sync_count(),
            written_bytes: log.writer().written_bytes(),
            unsynced_bytes: appended.saturating_sub(synced),
            opening: *opening,
            loaded: loader.loaded(),
            pages: loader.page_figures(),
        }
    }
}
