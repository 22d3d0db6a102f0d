//! The durable part of the log.

use std::sync::atomic::{AtomicU64, Ordering};

/// The first position. Entries of earlier processes are before it.
pub(crate) const FIRST_POSITION: u64 = 1;

/// The part of the log that was written at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// The position up to which entries were written.
    pub(crate) end: u64,
    /// The number before which all frames were written.
    pub(crate) next: u64,
    /// The region's length with those frames.
    pub(crate) region_bytes: u64,
}

/// The part of the log that is durable: it only grows.
#[derive(Debug)]
pub(crate) struct Durable {
    /// The position up to which entries are durable.
    synced: AtomicU64,
    /// All frames before this number are durable.
    mark: AtomicU64,
    /// The region's length with all frames before that number, at least.
    region_bytes: AtomicU64,
}

impl Durable {
    /// Creates the state without frames.
    pub(crate) fn new(region_bytes: u64) -> Durable {
        Durable { synced: FIRST_POSITION.into(), mark: 0.into(), region_bytes: region_bytes.into() }
    }

    /// Returns the position up to which entries are durable. A later failure does not change that.
    #[inline(always)]
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Returns the number before which all frames are durable.
    pub(crate) fn mark(&self) -> u64 {
        self.mark.load(Ordering::Acquire)
    }

    /// Returns the region's length with these frames.
    pub(crate) fn region_bytes(&self) -> u64 {
        self.region_bytes.load(Ordering::Acquire)
    }

    /// Records that everything in `written` was synced after it was written.
    pub(crate) fn note(&self, written: Written) {
        self.mark.fetch_max(written.next, Ordering::Release);
        self.region_bytes.fetch_max(written.region_bytes, Ordering::Release);
        self.synced.fetch_max(written.end, Ordering::Release);
    }

    /// Sets the mark of a log that was opened.
    pub(crate) fn set_mark(&self, mark: u64) {
        self.mark.store(mark, Ordering::Release);
    }
}
