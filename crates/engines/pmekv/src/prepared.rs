//! New records: the slot of each, and when it is written.
//!
//! Short records are written under the lane's lock. A record is streamed past the cache, and the next locked
//! instruction, such as taking a lock, would wait for all of it: in effect a second fence. Long records are written
//! before the lock, because they would keep other threads from the lane for too long.

use engine::Error;
use heap::Reservation;
use index::Position;
use items::NewItem;
use pmem::{Dram, Medium};

use crate::region::Region;

/// Records of up to so many bytes are written under their lane's lock: that takes as long as some cache misses.
const SHORT_BYTES_MAX: u64 = 2048;

/// The slot of a new record, and the record, flushed, once it is written.
pub(crate) struct Prepared<'a, 'i, D: Dram> {
    reservation: Reservation<'a, D>,
    unwritten: Option<NewItem<'i>>,
    checksum: u32,
    expires: bool,
}

impl<'a, 'i, D: Dram> Prepared<'a, 'i, D> {
    /// Reserves a slot for a record, and writes the record if it is long.
    #[inline(always)]
    pub(crate) fn new<M: Medium>(region: &'a Region<M, D>, item: &NewItem<'i>) -> Result<Self, Error> {
        let item_bytes = item.item_bytes();
        let reservation = region.reserve(item_bytes)?;
        let mut new = Prepared { reservation, unwritten: Some(*item), checksum: 0, expires: !item.expiry.is_never() };
        if item_bytes > SHORT_BYTES_MAX {
            new.write(region.medium());
        }
        Ok(new)
    }

    /// Wraps a record that is already written to `reservation`.
    pub(crate) fn of_written(reservation: Reservation<'a, D>, checksum: u32, expires: bool) -> Self {
        Prepared { reservation, unwritten: None, checksum, expires }
    }

    #[inline(always)]
    pub(crate) fn position(&self) -> Position {
        Position::of(self.reservation.place())
    }

    pub(crate) fn expires(&self) -> bool {
        self.expires
    }

    /// Returns the checksum of the written record.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Writes and flushes the record, unless that is done.
    #[inline(always)]
    pub(crate) fn write<M: Medium>(&mut self, medium: &M) {
        if let Some(item) = self.unwritten.take() {
            // SAFETY: the slot was reserved for the item, and nothing names it yet.
            self.checksum = unsafe { item.write(medium, self.reservation.place().offset, 0) };
        }
    }

    /// Keeps the slot, which an entry names.
    #[inline(always)]
    pub(crate) fn publish(self) {
        self.reservation.publish();
    }
}
