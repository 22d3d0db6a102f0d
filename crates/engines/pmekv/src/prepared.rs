//! New records: the room of each, and when it is written.
//!
//! Short ones are written under the lane's lock. A record is stored past the cache, and the next locked instruction, as a
//! lock is, would wait until all of that has arrived: a second fence, in all but the name. Long ones would keep others from the lane for too long.

use engine::Error;
use heap::Reservation;
use index::Position;
use items::NewItem;
use pmem::{Dram, Medium};

use crate::record::place_of;
use crate::{Pmekv, canary};

/// Records of up to so many bytes are written under their lane's lock: in the time of some cache misses.
const SHORT_BYTES_MAX: u64 = 2048;

/// A new record's room, and the record, flushed, once it was written.
pub(crate) struct Prepared<'a, 'i, D: Dram> {
    reservation: Reservation<'a, D>,
    unwritten: Option<NewItem<'i>>,
    checksum: u32,
    expires: bool,
}

impl<'a, D: Dram> Prepared<'a, '_, D> {
    /// Of a record that was written to its room.
    pub(crate) fn of_written(room: Reservation<'a, D>, checksum: u32, expires: bool) -> Self {
        Prepared { reservation: room, unwritten: None, checksum, expires }
    }

    #[inline(always)]
    pub(crate) fn position(&self) -> Position {
        Position::of(self.reservation.place())
    }

    pub(crate) fn expires(&self) -> bool {
        self.expires
    }

    /// Of what was written.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Writes the record and flushes it, if that was not done yet.
    #[inline(always)]
    pub(crate) fn write<M: Medium>(&mut self, medium: &M) {
        if let Some(item) = self.unwritten.take() {
            // SAFETY: the room was reserved for it, and nothing names it yet.
            self.checksum = unsafe { item.write(medium, self.reservation.place().offset, 0) };
        }
    }

    /// Keeps the room, which an entry names.
    #[inline(always)]
    pub(crate) fn publish(self) {
        self.reservation.publish();
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Finds room for a record, and writes it if it is long.
    #[inline(always)]
    pub(crate) fn prepare<'i>(&self, item: &NewItem<'i>) -> Result<Prepared<'_, 'i, D>, Error> {
        if self.medium.breaks(canary::FREED_BEFORE_COMMIT)
            && let Some(old) = self.tree.find(&self.records(), item.key)?
        {
            self.heap.free(&self.medium, place_of(old)?);
        }
        let item_bytes = item.item_bytes();
        let room = self.reserve(item_bytes)?;
        let mut new =
            Prepared { reservation: room, unwritten: Some(*item), checksum: 0, expires: !item.expiry.is_never() };
        if item_bytes > SHORT_BYTES_MAX {
            new.write(&self.medium);
        }
        Ok(new)
    }
}
