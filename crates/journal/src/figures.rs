//! What a journal can tell of itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::journal::Journal;
use crate::log::Opening;
use crate::{Acknowledger, File};

/// What of the base is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// What there is to be read.
    pub total_bytes: u64,
    /// What was read so far.
    pub done_bytes: u64,
    /// How long that took since the log was read; up to now, if it is not all.
    pub time: Duration,
}

/// A journal's figures at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// The space that the log has.
    pub log_bytes: u64,
    /// The most that it may have.
    pub log_bytes_max: u64,
    /// Bytes of the log that the base lacks: what opening would replay now.
    pub unapplied_bytes: u64,
    /// Syncs of the log since open.
    pub sync_count: u64,
    /// Bytes written to the log, and so synced sooner or later, since open.
    pub written_bytes: u64,
    /// Bytes appended that are not durable at this moment.
    pub unsynced_bytes: u64,
    /// What opening did.
    pub opening: Opening,
    /// What was done since.
    pub loaded: Loaded,
}

impl<F: File> Journal<F> {
    pub(crate) fn figures(&self) -> Figures {
        let (sync_count, written_bytes) = self.log_figures();
        let appended = self.append.appended.load(Ordering::Acquire);
        let synced = self.append.synced.load(Ordering::Acquire);
        let slots = self.segments.slots.lock();
        let newest_start = slots.sealed.back().map_or(slots.recycled, |sealed| sealed.end);
        Figures {
            log_bytes: slots.count * self.capacity_bytes(),
            log_bytes_max: self.options.log_bytes_max,
            unapplied_bytes: slots.sealed.iter().map(|sealed| sealed.end_bytes).sum::<u64>()
                + appended.saturating_sub(newest_start),
            sync_count,
            written_bytes,
            unsynced_bytes: appended.saturating_sub(synced),
            opening: self.opening,
            loaded: Loaded {
                total_bytes: self.loading.blocks.len_bytes(),
                done_bytes: self.loading.blocks.settled_bytes(),
                time: self.loading.time(),
            },
        }
    }
}

impl<F: File> Acknowledger<F> {
    /// Has all of the base read into memory in the background, where threads may do so.
    pub fn load_rest(&self) {
        self.journal().load_rest();
    }

    /// The figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.journal().figures()
    }
}
