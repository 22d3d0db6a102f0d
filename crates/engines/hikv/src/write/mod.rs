//! Writing one key: the item, then the entry (`publish`).

pub(crate) mod at_once;
pub(crate) mod batch;
pub(crate) mod conditional;
pub(crate) mod multi_put;
pub(crate) mod plan;
pub(crate) mod publish;
mod reservations;

use heap::{Place, Reservation};
use index::Position;
use index::partitioned_hash::{Candidate, Target};
use pmem::{Medium, MediumError};

use crate::canary;
use crate::order::Ordered;
use crate::write::publish::{Laid, Prepared, WriteTarget};
use crate::{HiKv, Memory};
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

    /// An error where nothing can be written.
    #[inline(always)]
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        if self.medium.is_writable() { Ok(self.medium.health()?) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// Comes before every change: none is made while a clean image is named.
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
        Ok(self.heap.reserve(&self.medium, item_bytes, epoch::thread_index())?)
    }

    /// Steps 1 and 2: room, and in it the item, flushed.
    #[inline(always)]
    pub(crate) fn prepare(&self, item: &NewItem<'_>) -> Result<Prepared<'_, D>, Error> {
        Ok(self.hold(self.lay(item)?))
    }

    /// As [`HiKv::prepare`], with a word for the room.
    #[inline(always)]
    pub(crate) fn lay(&self, item: &NewItem<'_>) -> Result<Laid, Error> {
        self.announce(item.expiry);
        let (place, stamp) = (self.reserve(item.item_bytes())?.publish(), self.stamp());
        // SAFETY: the room was just reserved.
        unsafe { item.write(&self.medium, place.offset, stamp) };
        Ok(Laid { position: Position::of(place), expiry: item.expiry, stamp })
    }

    /// Holds the item's room, which is given back if nothing is published there.
    pub(crate) fn hold(&self, Laid { position, expiry, stamp }: Laid) -> Prepared<'_, D> {
        let place = position.place().expect("an item that was laid has a place");
        Prepared { reservation: self.heap.hold(place), expiry, stamp }
    }

    /// Tries a second time what found the region full: free space may turn up. The caller is not pinned, or what waits for
    /// it would not be freed.
    #[inline(always)]
    pub(crate) fn with_space<R>(&self, attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        with_space(attempt, || self.make_space())
    }

    /// The sweep may find free space, and so may readers that move on: they are given some time, unless the caller is
    /// one of them.
    #[cold]
    fn make_space(&self) -> Result<(), Error> {
        self.finish_sweep()?;
        // Changes that wait in queues keep what they replaced.
        while !epoch::is_pinned() && Ordered::step(self)? == Progress::More {}
        self.await_readers();
        Ok(())
    }

    /// Frees what readers keep, once none has it any more: waits for that, but not for long, nor where the caller is such a reader.
    pub(crate) fn await_readers(&self) {
        wait_for_readers(|| {
            self.collect();
            !self.limbo.is_empty() && !epoch::is_pinned()
        });
    }

    /// A put. Its attempts are not in a loop: the compiler would work out ahead, and keep in memory, whatever follows from the item's lengths.
    #[inline(always)]
    pub(crate) fn put_item(&self, item: &NewItem<'_>) -> Result<(), Error> {
        match self.try_put(item) {
            Err(error) if error.is_full() => self.put_in_reserved(item.key, item.value, item.expiry),
            done => done,
        }
    }

    /// The second attempt.
    #[cold]
    #[inline(never)]
    fn put_in_reserved(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.make_space()?;
        self.try_put(&NewItem { key, value, expiry })
    }

    /// A put, unless the region is full.
    #[inline(always)]
    fn try_put(&self, item: &NewItem<'_>) -> Result<(), Error> {
        let pin = epoch::pin();
        let signature = self.hasher.signature(item.key);
        let target = self.index.prefetch(&self.medium, signature);
        if self.medium.breaks(canary::FREE_BEFORE_UNLINK) {
            self.free_before_unlink(signature, item.key)?;
        }
        if self.medium.breaks(canary::ENTRY_BEFORE_ITEM) {
            return self.publish_before_it_is_written(WriteTarget::any(signature, item.key), item);
        }
        let new = self.lay(item)?;
        let candidate = self.prefetch_old(&target);
        self.publish_at_once(pin, &target, candidate, item.key, new)
    }

    /// The broken twin whose entry comes first.
    #[cold]
    fn publish_before_it_is_written(&self, target: WriteTarget<'_>, item: &NewItem<'_>) -> Result<(), Error> {
        let room = self.reserve(item.item_bytes())?;
        let (at, stamp) = (room.place().offset, self.stamp());
        self.publish(target, Some(Prepared { reservation: room, expiry: item.expiry, stamp }))?;
        // SAFETY: it is not: this twin is broken on purpose, and runs on the crash medium alone, with one thread.
        unsafe { item.write(&self.medium, at, stamp) };
        self.medium.order();
        Ok(())
    }

    /// Starts the miss of the old item, if there seems to be one: the bucket's lock waits for the new one's write-back. Where there is
    /// none, the write is going to count.
    #[inline(always)]
    pub(crate) fn prefetch_old(&self, target: &Target<'_>) -> Option<Candidate> {
        let candidate = self.index.candidate(&self.medium, target.line(), target.signature());
        match candidate {
            Some(candidate) => self.medium.prefetch_line(candidate.position.offset()),
            None => target.prefetch_count(),
        }
        candidate
    }

    /// The broken twin that reuses the old item's room before the new entry is durable.
    fn free_before_unlink(&self, signature: u64, key: &[u8]) -> Result<(), Error> {
        if let Some((position, _)) = self.find(signature, key)? {
            self.heap.free(&self.medium, place_of(position)?);
        }
        Ok(())
    }
}

#[inline(always)]
pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > Limits::KEY_BYTES_MAX { Err(Error::KeyTooLong { len_bytes: key.len() }) } else { Ok(()) }
}

pub(crate) fn place_of(position: Position) -> Result<Place, Error> {
    let offset = position.offset().0;
    position.place().ok_or(Error::Corrupt { offset, what: "an entry names an item of no size class" })
}
