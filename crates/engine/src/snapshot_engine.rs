//! The seam between fronts and engines, as far as it concerns snapshots.

use std::time::Duration;

use crate::{Cursor, Error, Expiry, Witness};

/// Which snapshot: the newest stamp that it sees, and when it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    epoch: u32,
    now_ms: u64,
}

impl Moment {
    /// For engines: a snapshot that sees stamps up to `epoch`, taken at `now_ms` after the Unix epoch.
    #[must_use]
    pub const fn new(epoch: u32, now_ms: u64) -> Moment {
        Moment { epoch, now_ms }
    }

    /// The newest stamp that it sees.
    #[must_use]
    pub const fn epoch(self) -> u32 {
        self.epoch
    }

    /// True if an item of this stamp is of the snapshot, unless it was replaced by then.
    #[inline(always)]
    #[must_use]
    pub fn sees(self, stamp: u32) -> bool {
        stamp <= self.epoch
    }

    /// True if a key of this expiry was absent at that time.
    #[must_use]
    pub fn is_past(self, expiry: Expiry) -> bool {
        !expiry.is_never() && expiry.ms() <= self.now_ms
    }
}

/// The figures of snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SnapshotStats {
    /// Live snapshots.
    pub snapshot_count: u64,
    /// How long the oldest of them has lived.
    pub oldest_age: Duration,
    /// Items that were replaced or deleted, and that snapshots keep.
    pub kept_count: u64,
    /// Bytes of those items.
    pub kept_bytes: u64,
    /// Volatile memory that knows them.
    pub dram_bytes: u64,
}

/// Is shown a key, its value, and when it expires.
pub type OnItem<'a> = dyn FnMut(&[u8], &[u8], Expiry) + 'a;

/// Is told of an item that cannot be shown, and passes the error on unless the walk is to go on without the item.
pub type OnDamaged<'a> = dyn FnMut(Error) -> Result<(), Error> + 'a;

/// What engines can do at a snapshot. A snapshot lives until it is released, or the store is closed.
pub trait SnapshotEngine {
    /// Takes a snapshot: of every write that returned before this call, of none that begins after it returns, and of each
    /// write in it with all that had returned before that one began. Waits for the operations of the moment.
    ///
    /// # Errors
    /// [`Error::InsideCallback`] if the caller is inside of another operation's callback, for which it would wait;
    /// [`Error::TooManySnapshots`].
    fn take_snapshot(&self) -> Result<Moment, Error>;

    /// Ends a snapshot: what it alone kept is freed.
    fn release_snapshot(&self, at: Moment);

    /// As [`crate::Engine::get`], at the snapshot, and with the key's expiry.
    fn get_at(&self, at: Moment, key: &[u8], found: &mut dyn FnMut(Witness, Expiry, &[u8])) -> Result<bool, Error>;

    /// As [`crate::Engine::walk`], at the snapshot, and with each key's expiry: from the first step to the last each of its
    /// keys is shown exactly once, unless it is damaged.
    fn walk_at(
        &self,
        at: Moment,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error>;
}
