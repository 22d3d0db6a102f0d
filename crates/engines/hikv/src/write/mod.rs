//! Writes of one key: the item, then the entry (`publish`).

pub(crate) mod at_once;
pub(crate) mod batch;
pub(crate) mod conditional;
pub(crate) mod multi_put;
pub(crate) mod plan;
pub(crate) mod publish;
mod reservations;

use heap::Reservation;
use index::Position;
use pmem::{Medium, MediumError};

use crate::order::Ordered;
use crate::read::check_key;
use crate::write::publish::{Laid, Prepared, WriteTarget};
use crate::{HiKv, Memory, broken, canary};
use engine::{Error, Expiry, Limits, Progress, wait_for_readers, with_space};
use items::NewItem;

impl<M: Medium, D: Memory> HiKv<M, D> {
    pub(crate) fn check_put(&self, key: &[u8], value_bytes: u64) -> Result<(), Error> {
        check_key(key)?;
        if value_bytes > Limits::VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len_bytes: value_bytes });
        }
        self.check_writable()
    }

    /// Returns an error if nothing can be written.
    #[inline(always)]
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        if self.reader.medium().is_writable() {
            Ok(self.reader.medium().health()?)
        } else {
            Err(MediumError::ReadOnly.into())
        }
    }

    /// Called before every change: none is made while a clean image is named.
    #[inline(always)]
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        self.may_write()?;
        if self.image.is_named() {
            self.forget_image();
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn reserve(&self, item_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(self.reader.medium(), item_bytes, epoch::thread_index())?)
    }

    /// Does steps 1 and 2: reserves space, writes the item and flushes it.
    #[inline(always)]
    pub(crate) fn prepare(&self, item: &NewItem<'_>) -> Result<Prepared<'_, D>, Error> {
        Ok(self.hold(self.lay(item)?))
    }

    /// As [`HiKv::prepare`], and returns the position instead of the reservation.
    #[inline(always)]
    pub(crate) fn lay(&self, item: &NewItem<'_>) -> Result<Laid, Error> {
        self.announce(item.expiry);
        let (place, stamp) = (self.reserve(item.item_bytes())?.publish(), self.stamp());
        // SAFETY: the space was just reserved.
        unsafe { item.write(self.reader.medium(), place.offset, stamp) };
        Ok(Laid { position: Position::of(place), expiry: item.expiry, stamp })
    }

    /// Reserves the item's space again, so that it is freed if nothing is published there.
    pub(crate) fn hold(&self, Laid { position, expiry, stamp }: Laid) -> Prepared<'_, D> {
        let place = position.place().expect("an item that was laid has a place");
        Prepared { reservation: self.heap.hold(place), expiry, stamp }
    }

    /// Tries a second time if the region was full: free space may turn up. The caller is not pinned: otherwise garbage
    /// that waits for the caller would not be freed.
    #[inline(always)]
    pub(crate) fn with_space<R>(&self, attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        with_space(attempt, || self.make_space())
    }

    /// Finishes the sweep, which may find free space, and waits for readers, which may free some. It does not wait if
    /// the caller is such a reader.
    #[cold]
    fn make_space(&self) -> Result<(), Error> {
        self.finish_sweep()?;
        // Queued changes keep the items that they replaced.
        while !epoch::is_pinned() && Ordered::step(self)? == Progress::More {}
        self.await_readers();
        Ok(())
    }

    /// Frees garbage once no reader has it. Waits for that for a limited time, unless the caller is such a reader.
    pub(crate) fn await_readers(&self) {
        wait_for_readers(|| {
            self.collect();
            !self.limbo.is_empty() && !epoch::is_pinned()
        });
    }

    /// Puts an item. The two attempts are not in a loop: the compiler would compute all values that depend on the
    /// item's lengths ahead, and keep them in memory.
    #[inline(always)]
    pub(crate) fn put_item(&self, item: &NewItem<'_>) -> Result<(), Error> {
        match self.try_put(item) {
            Err(error) if error.is_full() => self.put_in_reserved(item.key, item.value, item.expiry),
            done => done,
        }
    }

    /// Makes the second attempt.
    #[cold]
    #[inline(never)]
    fn put_in_reserved(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.make_space()?;
        self.try_put(&NewItem { key, value, expiry })
    }

    /// Puts an item unless the region is full.
    #[inline(always)]
    fn try_put(&self, item: &NewItem<'_>) -> Result<(), Error> {
        let pin = epoch::pin();
        let signature = self.reader.signature(item.key);
        let target = self.reader.index().prefetch(self.reader.medium(), signature);
        if self.reader.medium().breaks(canary::FREE_BEFORE_UNLINK) {
            broken::free_before_unlink(self, signature, item.key)?;
        }
        if self.reader.medium().breaks(canary::ENTRY_BEFORE_ITEM) {
            return broken::publish_unwritten(self, WriteTarget::any(signature, item.key), item);
        }
        let new = self.lay(item)?;
        let candidate = self.reader.prefetch_old(&target);
        self.publish_at_once(pin, &target, candidate, item.key, new)
    }
}
