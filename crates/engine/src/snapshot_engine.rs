//! The interface between front ends and engines for snapshots.

use std::time::Duration;

use crate::{Cursor, Error, Expiry, OnFound};

/// A snapshot: the newest stamp that it sees, and the time at which it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    epoch: u32,
    now_ms: u64,
}

impl Moment {
    /// For engines: returns a snapshot that sees stamps up to `epoch`, taken at `now_ms` after the Unix epoch.
    #[must_use]
    pub const fn new(epoch: u32, now_ms: u64) -> Moment {
        Moment { epoch, now_ms }
    }

    /// Returns the newest stamp that the snapshot sees.
    #[must_use]
    pub const fn epoch(self) -> u32 {
        self.epoch
    }

    /// Returns true if an item of this stamp belongs to the snapshot, unless the item was already replaced.
    #[inline(always)]
    #[must_use]
    pub fn sees(self, stamp: u32) -> bool {
        stamp <= self.epoch
    }

    /// Returns true if a key of this expiry had expired when the snapshot was taken.
    #[must_use]
    pub fn is_past(self, expiry: Expiry) -> bool {
        !expiry.is_never() && expiry.ms() <= self.now_ms
    }
}

/// The statistics of snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SnapshotStats {
    /// Live snapshots.
    pub snapshot_count: u64,
    /// The age of the oldest live snapshot.
    pub oldest_age: Duration,
    /// Replaced or deleted items that snapshots keep.
    pub kept_count: u64,
    /// Bytes of those items.
    pub kept_bytes: u64,
    /// DRAM of the records of those items.
    pub dram_bytes: u64,
}

/// Receives a key, its value, and its expiry.
pub type OnItem<'a> = dyn FnMut(&[u8], &[u8], Expiry) + 'a;

/// Receives the error of an unreadable item. Returns `Ok` to continue without the item, or the error to stop.
pub type OnDamaged<'a> = dyn FnMut(Error) -> Result<(), Error> + 'a;

/// The operations of engines at a snapshot. A snapshot lives until it is released or the store is closed.
pub trait SnapshotEngine {
    /// Takes a snapshot. It contains every write that returned before this call and no write that begins after it
    /// returns. With each write it contains all writes that had returned before that write began. Waits for the
    /// operations under way.
    ///
    /// # Errors
    /// [`Error::InsideCallback`] if the caller is inside another operation's callback, for whose end it would wait;
    /// [`Error::TooManySnapshots`].
    fn take_snapshot(&self) -> Result<Moment, Error>;

    /// Ends a snapshot and frees the items that no other snapshot keeps.
    fn release_snapshot(&self, at: Moment);

    /// As [`crate::Reads::get`], at the snapshot.
    fn get_at(&self, at: Moment, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error>;

    /// As [`crate::Walks::walk`], at the snapshot: from the first step to the last, each of its keys is visited
    /// exactly once, unless the key is damaged.
    fn walk_at(
        &self,
        at: Moment,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error>;
}
