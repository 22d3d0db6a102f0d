//! Get, put, delete, clear, walk.

use std::io::Read;
use std::thread;

use heap::{Place, Reservation};
use index::Position;
use index::partitioned_hash::Cursor;
use pmem::{Canary, Dram, Medium, MediumError};

use super::HiKv;
use super::item::{self, Item, Streamed};
use super::layout::HEADER_BYTES;
use super::order::{Order, Written};
use crate::{CheckStep, Damage, Engine, EngineStats, Error, Limits, OrderedEngine, Progress, Version, Wanted};

/// Keys of a batch whose memory accesses overlap: as many as a core has misses in flight, with some to spare.
pub(super) const GROUP_COUNT: usize = 16;
/// How often a writer on a full store yields to readers who keep retired items: some milliseconds, many times what a
/// read takes.
const READER_WAITS_MAX: usize = 1000;

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    /// The key's item, if `position` names it. The caller is pinned, or holds the bucket's lock.
    #[inline(always)]
    pub(super) fn item_of(&self, position: Position, key: &[u8]) -> Result<Option<Item<'_>>, Error> {
        // SAFETY: positions are shown by the index to pinned callers, and every caller here stays pinned until it is
        // done with the item.
        let item = unsafe { Item::read(&self.medium, position) }?;
        if item.key == key {
            if self.verify_values {
                whole(&item, position)?;
            }
            return Ok(Some(item));
        }
        // Two keys of one signature are rare, damage is not to be mistaken for them.
        whole(&item, position)?;
        Ok(None)
    }

    #[inline(always)]
    fn find(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        self.index.find(&self.medium, signature, |position| {
            item::prefetch(&self.medium, position);
            Ok(self.item_of(position, key)?.map(|item| (position, item)))
        })
    }

    pub(super) fn check_put(&self, key: &[u8], value_bytes: u64) -> Result<(), Error> {
        check_key(key)?;
        if value_bytes > Limits::VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len_bytes: value_bytes });
        }
        self.check_writable()
    }

    fn check_writable(&self) -> Result<(), Error> {
        if self.medium.is_writable() { Ok(()) } else { Err(MediumError::ReadOnly.into()) }
    }

    #[inline]
    pub(super) fn reserve(&self, item_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(&self.medium, item_bytes, epoch::thread_index())?)
    }

    /// Tries a second time what found the region full: free space may turn up. The caller is not pinned, or what waits for
    /// it would not be freed.
    #[inline(always)]
    fn with_room<R>(&self, mut attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
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
    fn try_put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let pin = epoch::pin();
        let signature = self.hasher.signature(key);
        self.index.prefetch(&self.medium, signature);
        self.index.prefetch_locks(signature);
        if self.medium.breaks(Canary::FreeBeforeUnlink) {
            self.free_before_unlink(signature, key)?;
        }
        let reservation = self.reserve((HEADER_BYTES + key.len() + value.len()) as u64)?;
        let at = reservation.place().offset;
        if self.medium.breaks(Canary::EntryBeforeItem) {
            self.publish(signature, key, reservation)?;
            // SAFETY: it is not: this twin is broken on purpose, and runs on the crash medium alone, with one thread.
            unsafe { item::write(&self.medium, at, key, value) };
            self.medium.order();
            return Ok(());
        }
        // SAFETY: the room was just reserved.
        unsafe { item::write(&self.medium, at, key, value) };
        self.prefetch_old(signature);
        match self.publish(signature, key, reservation)? {
            None => Ok(()),
            Some(reservation) => {
                drop(pin);
                self.publish_later(signature, key, reservation)
            }
        }
    }

    /// Steps 3 to 6 of a put: the item at the reservation was written and flushed. The reservation comes back if the
    /// queue is full. The caller is pinned.
    #[inline]
    fn publish<'r>(
        &self,
        signature: u64,
        key: &[u8],
        reservation: Reservation<'r, D>,
    ) -> Result<Option<Reservation<'r, D>>, Error> {
        let position = Position::of(reservation.place());
        loop {
            let bucket = self.index.lock(self.cx(), signature);
            let found = bucket.find(|position| Ok::<_, Error>(self.item_of(position, key)?.map(drop)))?;
            let Some(ticket) = self.order.take(self.index.partition(signature)) else {
                return Ok(Some(reservation));
            };
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
                    reservation.publish();
                    let crowded = published.crowded;
                    published.settle(&self.medium)?;
                    let old = found.map(|found| found.position);
                    self.order.tell(self.cx(), ticket, Written { key, old, new: Some(position) });
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
    pub(super) fn publish_later(
        &self,
        signature: u64,
        key: &[u8],
        reservation: Reservation<'_, D>,
    ) -> Result<(), Error> {
        let mut waiting = Some(reservation);
        while let Some(reservation) = waiting {
            O::make_room(self, self.index.partition(signature))?;
            let _pin = epoch::pin();
            waiting = self.publish(signature, key, reservation)?;
        }
        Ok(())
    }

    /// A delete, unless the key's queue is full.
    #[inline]
    fn try_delete(&self, signature: u64, key: &[u8]) -> Result<Option<bool>, Error> {
        let _pin = epoch::pin();
        let bucket = self.index.lock(self.cx(), signature);
        let Some(found) = bucket.find(|position| Ok::<_, Error>(self.item_of(position, key)?.map(drop)))? else {
            return Ok(Some(false));
        };
        let Some(ticket) = self.order.take(self.index.partition(signature)) else {
            return Ok(None);
        };
        bucket.remove(&found).settle(&self.medium)?;
        if self.medium.breaks(Canary::PlainZeroDelete) {
            self.heap.free(&self.medium, place_of(found.position)?);
            return Ok(Some(true));
        }
        self.order.tell(self.cx(), ticket, Written { key, old: Some(found.position), new: None });
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

impl<M: Medium, D: Dram, O: Order<M, D>> Engine for HiKv<M, D, O> {
    fn name(&self) -> &'static str {
        "hikv"
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error> {
        check_key(key)?;
        let _pin = epoch::pin();
        let Some((position, item)) = self.find(self.hasher.signature(key), key)? else {
            return Ok(false);
        };
        found(item.version(position), item.value);
        Ok(true)
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| check_key(key))?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let _pin = epoch::pin();
            let mut signatures = [0; GROUP_COUNT];
            for (signature, key) in signatures.iter_mut().zip(keys) {
                *signature = self.hasher.signature(key);
                self.index.prefetch(&self.medium, *signature);
            }
            for &signature in &signatures[..keys.len()] {
                if let Some(position) = self.index.hint(&self.medium, signature) {
                    item::prefetch(&self.medium, position);
                }
            }
            for (i, (key, signature)) in keys.iter().zip(signatures).enumerate() {
                let item = self.index.find(&self.medium, signature, |position| self.item_of(position, key))?;
                found(group * GROUP_COUNT + i, item.map(|item| item.value));
            }
        }
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check_put(key, value.len() as u64)?;
        self.with_room(|| self.try_put(key, value))
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.check_put(key, value.len() as u64))?;
        items.chunks(GROUP_COUNT).try_for_each(|group| self.put_group(group))
    }

    fn put_from(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read) -> Result<(), Error> {
        self.check_put(key, len_bytes)?;
        // The source may be slow: nobody is kept from freeing memory meanwhile.
        let item = Streamed::start(key, len_bytes, source)?;
        let reservation = self.with_room(|| self.reserve(item.item_bytes()))?;
        // SAFETY: the room was just reserved.
        unsafe { item.write(&self.medium, reservation.place().offset) }?;
        let signature = self.hasher.signature(key);
        let pin = epoch::pin();
        let waiting = self.publish(signature, key, reservation)?;
        drop(pin);
        waiting.map_or(Ok(()), |reservation| self.publish_later(signature, key, reservation))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        check_key(key)?;
        self.check_writable()?;
        let signature = self.hasher.signature(key);
        loop {
            if let Some(deleted) = self.try_delete(signature, key)? {
                return Ok(deleted);
            }
            O::make_room(self, self.index.partition(signature))?;
        }
    }

    fn clear(&self) -> Result<(), Error> {
        self.check_writable()?;
        // Free space that is still unknown could not be told from what is freed now.
        self.finish_sweep()?;
        self.order.suspend(self.cx());
        let cleared = self.with_room(|| Ok(self.index.clear(self.cx())?));
        self.order.resume();
        let cleared = cleared?;
        self.cleared.retire(cleared, |cleared| cleared.free(self.cx()));
        // A caller that is pinned itself (it reads a value) leaves the freeing to the background.
        while !epoch::is_pinned() && !self.cleared.is_empty() {
            self.collect();
            thread::yield_now();
        }
        Ok(())
    }

    fn len(&self) -> Result<u64, Error> {
        self.finish_sweep()?;
        Ok(self.index.len())
    }

    fn walk(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<Cursor, Error> {
        let _pin = epoch::pin();
        self.index.visit(&self.medium, cursor, |_, position| {
            // SAFETY: pinned since before the walk's step.
            let item = unsafe { Item::read(&self.medium, position) }?;
            whole(&item, position)?;
            each(item.key, item.value);
            Ok(())
        })
    }

    fn check(&self, cursor: Cursor, damaged: &mut dyn FnMut(Damage)) -> Result<CheckStep, Error> {
        self.check_step(cursor, damaged)
    }

    fn step(&self) -> Result<Progress, Error> {
        self.background_step()
    }

    fn tidy(&self) {
        self.collect();
    }

    fn wanted(&self) -> Wanted {
        let space = if self.medium.is_writable() && self.runs_low() { Wanted::One } else { Wanted::Nobody };
        space.max(self.order.wanted())
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        O::operations(self)
    }

    fn stats(&self) -> EngineStats {
        self.gather_stats()
    }
}

#[inline(always)]
fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > Limits::KEY_BYTES_MAX { Err(Error::KeyTooLong { len_bytes: key.len() }) } else { Ok(()) }
}

/// An error unless the item's checksum fits.
#[inline(never)]
pub(super) fn whole(item: &Item<'_>, position: Position) -> Result<(), Error> {
    if item.is_whole() {
        return Ok(());
    }
    Err(Error::Corrupt { offset: position.offset().0, what: "an item's checksum does not fit" })
}

pub(super) fn place_of(position: Position) -> Result<Place, Error> {
    let offset = position.offset().0;
    position.place().ok_or(Error::Corrupt { offset, what: "an entry names an item of no size class" })
}
