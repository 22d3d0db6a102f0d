//! Writing one key: its item, then its entry.

use std::thread;

use heap::{Place, Reservation};
use index::Position;
use pmem::{Canary, Dram, Medium, MediumError};

use super::HiKv;
use super::item;
use super::layout::HEADER_BYTES;
use super::order::{Order, Written};
use super::snapshots::Unpublished;
use crate::{Error, Limits, Progress};

/// How often a writer on a full store yields to readers who keep retired items: some milliseconds, many times what a
/// read takes.
const READER_WAITS_MAX: usize = 1000;

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    pub(super) fn check_put(&self, key: &[u8], value_bytes: u64) -> Result<(), Error> {
        check_key(key)?;
        if value_bytes > Limits::VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len_bytes: value_bytes });
        }
        self.check_writable()
    }

    /// Comes before every change: none is made while a clean image is named.
    #[inline(always)]
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        if !self.medium.is_writable() {
            return Err(MediumError::ReadOnly.into());
        }
        if self.image.is_named() {
            self.forget_image();
        }
        Ok(())
    }

    #[inline]
    pub(super) fn reserve(&self, item_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(&self.medium, item_bytes, epoch::thread_index())?)
    }

    /// Tries a second time what found the region full: free space may turn up. The caller is not pinned, or what waits for
    /// it would not be freed.
    #[inline(always)]
    pub(super) fn with_room<R>(&self, mut attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        let mut is_first = true;
        loop {
            match attempt() {
                Err(Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. })) if is_first => {
                    self.make_room()?;
                    is_first = false;
                }
                result => return result,
            }
        }
    }

    /// The sweep may find free space, and so may readers that move on: they are given some time, unless the caller is
    /// one of them.
    #[cold]
    fn make_room(&self) -> Result<(), Error> {
        self.finish_sweep()?;
        // Changes that wait in queues keep what they replaced.
        while !epoch::is_pinned() && O::step(self)? == Progress::More {}
        for _ in 0..READER_WAITS_MAX {
            self.collect();
            if self.limbo.is_empty() || epoch::is_pinned() {
                break;
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// A put, unless the region is full.
    #[inline(always)]
    pub(super) fn try_put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let pin = epoch::pin();
        let signature = self.hasher.signature(key);
        self.index.prefetch(&self.medium, signature);
        self.index.prefetch_locks(signature);
        if self.medium.breaks(Canary::FreeBeforeUnlink) {
            self.free_before_unlink(signature, key)?;
        }
        let reservation = self.reserve((HEADER_BYTES + key.len() + value.len()) as u64)?;
        let (at, stamp) = (reservation.place().offset, self.stamp());
        let item = Unpublished { reservation, stamp };
        if self.medium.breaks(Canary::EntryBeforeItem) {
            self.publish(signature, key, item)?;
            // SAFETY: it is not: this twin is broken on purpose, and runs on the crash medium alone, with one thread.
            unsafe { item::write(&self.medium, at, stamp, key, value) };
            self.medium.order();
            return Ok(());
        }
        // SAFETY: the room was just reserved.
        unsafe { item::write(&self.medium, at, stamp, key, value) };
        self.prefetch_old(signature);
        match self.publish(signature, key, item)? {
            None => Ok(()),
            Some(item) => {
                drop(pin);
                self.publish_later(signature, key, item)
            }
        }
    }

    /// Steps 3 to 6 of a put. The item comes back if the queue is full. The caller is pinned.
    #[inline]
    pub(super) fn publish<'r>(
        &self,
        signature: u64,
        key: &[u8],
        mut item: Unpublished<'r, D>,
    ) -> Result<Option<Unpublished<'r, D>>, Error> {
        let position = item.position();
        loop {
            let bucket = self.index.lock(self.cx(), signature);
            let found = bucket.find(|position| Ok::<_, Error>(self.item_of(position, key)?.map(drop)))?;
            let Some(ticket) = self.order.take(self.index.partition(signature)) else {
                return Ok(Some(item));
            };
            let old = found.as_ref().map(|found| found.position);
            if !self.may_publish(item.stamp, signature, key, old)? {
                drop((ticket, bucket));
                item = self.stamp_anew(item)?;
                continue;
            }
            let published = match &found {
                Some(found) => Ok(bucket.replace(found, position)),
                None => bucket.insert(position),
            };
            match published {
                Err(full) => {
                    drop(ticket);
                    self.index.split(self.cx(), signature, full)?;
                }
                Ok(published) => {
                    item.reservation.publish();
                    if self.medium.breaks(Canary::KeptAfterPublish) {
                        self.keep_for_snapshots(item.stamp, signature, key, old)?;
                    }
                    let crowded = published.crowded;
                    published.settle(&self.medium)?;
                    self.order.tell(self.disposal(), ticket, Written { key, old, new: Some(position) });
                    if let Some(segment) = crowded {
                        // The item is in; a split that finds no space now will be tried again by a later put.
                        let _ = self.index.split(self.cx(), signature, segment);
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Publishes where queues may be full: whoever waits is not pinned.
    pub(super) fn publish_later(&self, signature: u64, key: &[u8], item: Unpublished<'_, D>) -> Result<(), Error> {
        let mut waiting = Some(item);
        while let Some(item) = waiting {
            O::make_room(self, self.index.partition(signature))?;
            let _pin = epoch::pin();
            waiting = self.publish(signature, key, item)?;
        }
        Ok(())
    }

    /// A delete, unless the key's queue is full.
    #[inline]
    pub(super) fn try_delete(&self, signature: u64, key: &[u8]) -> Result<Option<bool>, Error> {
        let _pin = epoch::pin();
        let bucket = self.index.lock(self.cx(), signature);
        let Some(found) = bucket.find(|position| Ok::<_, Error>(self.item_of(position, key)?.map(drop)))? else {
            return Ok(Some(false));
        };
        let Some(ticket) = self.order.take(self.index.partition(signature)) else {
            return Ok(None);
        };
        self.keep_for_snapshots(self.stamp(), signature, key, Some(found.position))?;
        bucket.remove(&found).settle(&self.medium)?;
        if self.medium.breaks(Canary::PlainZeroDelete) {
            self.heap.free(&self.medium, place_of(found.position)?);
            return Ok(Some(true));
        }
        self.order.tell(self.disposal(), ticket, Written { key, old: Some(found.position), new: None });
        Ok(Some(true))
    }

    /// Starts the miss of the old item, if there seems to be one: the bucket's lock waits for the new one's write-back.
    #[inline(always)]
    pub(super) fn prefetch_old(&self, signature: u64) {
        if let Some(position) = self.index.hint(&self.medium, signature) {
            self.medium.prefetch(position.offset());
        }
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
pub(super) fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > Limits::KEY_BYTES_MAX { Err(Error::KeyTooLong { len_bytes: key.len() }) } else { Ok(()) }
}

pub(super) fn place_of(position: Position) -> Result<Place, Error> {
    let offset = position.offset().0;
    position.place().ok_or(Error::Corrupt { offset, what: "an entry names an item of no size class" })
}
