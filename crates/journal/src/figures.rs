//! Figures that a journal reports.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::journal::Journal;
use crate::log::Opening;
use crate::{Acknowledger, File};

/// The part of the base that is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Number of bytes to be read.
    pub total_bytes: u64,
    /// Number of bytes read so far.
    pub done_bytes: u64,
    /// Time since the log was read, until everything was read, or until now.
    pub time: Duration,
}

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
    /// Loads all of the base into memory in the background, if the options allow threads.
    pub fn load_rest(&self) {
        self.journal().load_rest();
    }

    /// Returns the figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.journal().figures()
    }
}
