//! What a journal can tell of itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::journal::Journal;
use crate::{Acknowledger, File};

/// What opening did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opening {
    /// Bytes of the base, read into memory.
    pub loaded_bytes: u64,
    /// How long that took.
    pub load_time: Duration,
    /// Bytes of the log, applied to them.
    pub replayed_bytes: u64,
    /// How long that took.
    pub replay_time: Duration,
}

/// A journal's figures at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// The length of the log's file.
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
}

impl<F: File> Journal<F> {
    pub(crate) fn figures(&self) -> Figures {
        let (sync_count, written_bytes) = self.log_figures();
        let appended = self.appended.load(Ordering::Acquire);
        let synced = self.synced.load(Ordering::Acquire);
        let slots = self.slots.lock();
        let newest_start = slots.sealed.back().map_or(slots.recycled, |sealed| sealed.end);
        Figures {
            log_bytes: slots.count * self.options.segment_bytes,
            log_bytes_max: self.options.log_bytes_max,
            unapplied_bytes: slots.sealed.iter().map(|sealed| sealed.end_bytes).sum::<u64>()
                + appended.saturating_sub(newest_start),
            sync_count,
            written_bytes,
            unsynced_bytes: appended.saturating_sub(synced),
            opening: self.opening,
        }
    }
}

impl<F: File> Acknowledger<F> {
    /// The figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.journal().figures()
    }
}
