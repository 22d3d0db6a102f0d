//! Writing one key: the item, if it is larger than a slot; then its slot (`index::block_hash`).

use engine::{Answer, Before, Error, Expiry, Limits, Version, while_readers_keep, with_room};
use heap::Reservation;
use heap::layout::SEGMENT_BYTES;
use index::Position;
use index::block_hash::{At, Key, Published, Slot};
use index::cached_table::{NewCopy, Write, canary};
use index::segmented::Garbage;
use items::NewItem;
use pmem::{Dram, Medium, MediumError};

use crate::cached::Hidden;
use crate::read::{version_of_item, version_of_small};
use crate::reaper::Reaper;
use crate::{Growth, RewoHash};

/// A slot that was made, and room for its item, written and flushed, if that is larger.
pub(crate) struct Prepared<'a, 'v, D: Dram> {
    pub(crate) new: New<'v>,
    room: Option<Reservation<'a, D>>,
    expires: bool,
}

/// A slot that was made, and what its writer knows of the item: an item that was written past the cache is slow to read.
#[derive(Clone, Copy)]
pub(crate) struct New<'v> {
    pub(crate) slot: Slot,
    pub(crate) copy: Option<NewCopy<'v>>,
}

/// What a write found under its locks, and did.
enum Entered<'a, 'k> {
    /// It is published, in the place of the slot that was there.
    Published(Published<'a>, Option<Slot>, Hidden<'a, 'k>),
    /// Nothing has changed: it was not allowed, or removes what is not there.
    Unchanged(Answer<Before>),
}

/// Says whether a write takes place, of what the key's slot is.
pub(crate) type Allowed<'a> = dyn FnMut(Option<&Slot>) -> bool + 'a;

impl<'a, 'v, D: Dram> Prepared<'a, 'v, D> {
    /// The slot names the item at the start of `room`, which was written; its copy is `copy`, if the caller knows.
    pub(crate) fn in_room(
        key: Key<'_>,
        room: Reservation<'a, D>,
        expiry: Expiry,
        copy: impl FnOnce(Position) -> Option<NewCopy<'v>>,
    ) -> Prepared<'a, 'v, D> {
        let position = Position::of(room.place());
        let new = New { slot: Slot::of_item(key.signature, position), copy: copy(position) };
        Prepared { new, room: Some(room), expires: !expiry.is_never() }
    }

    /// The item is named, and stays. The reaper is told only now: of a walk that it began before, it may have met the key's old item.
    pub(crate) fn publish(self, reaper: &Reaper) {
        self.room.into_iter().for_each(|room| _ = room.publish());
        if self.expires {
            reaper.expectation.expect();
        }
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        if self.medium.is_writable() { Ok(self.medium.health()?) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// Puts, unless the value is too long.
    pub(crate) fn put_item(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.may_write()?;
        check_value(value.len() as u64)?;
        let key = self.key(key)?;
        let item = NewItem { key: key.bytes, value, expiry };
        let put = || {
            let _pin = epoch::pin();
            self.aim(key);
            let mut new = Some(self.prepare(key, &item)?);
            self.aim_at_old(key, item.item_bytes());
            self.write_pinned(key, &mut new, &mut |_| true)
        };
        self.with_room(put).map(|answer| self.tell_expired(key, &answer))
    }

    /// Asks the cache for what a write of the key begins with. The caller is pinned.
    #[inline(always)]
    pub(crate) fn aim(&self, key: Key<'_>) {
        self.table.aim(&self.medium, key.signature);
        self.cached_table().into_iter().for_each(|cache| cache.aim(key.signature));
    }

    /// Starts the misses of the old item and of its copy, if there seem to be such: the buckets' locks wait for the new item's write-back. A delete has
    /// none of that, and no time to gain. The caller is pinned.
    #[inline(always)]
    pub(crate) fn aim_at_old(&self, key: Key<'_>, item_bytes: u64) {
        if let Some(position) = self.table.hint(&self.medium, key).position() {
            self.medium.prefetch_line(position.offset());
        }
        self.cached_table().into_iter().for_each(|cache| cache.aim_at_room(key.signature, item_bytes));
    }

    /// Step 1.
    #[inline(always)]
    pub(crate) fn prepare<'v>(&self, key: Key<'_>, item: &NewItem<'v>) -> Result<Prepared<'_, 'v, D>, Error> {
        let copy =
            |version: Version| NewCopy { value: item.value, version: version.words(), expiry_ms: item.expiry.ms() };
        if let Some(slot) = Slot::whole(item.key, item.value).filter(|_| item.expiry.is_never()) {
            let copy = self.cache.as_ref().map(|_| copy(version_of_small(item.value)));
            return Ok(Prepared { new: New { slot, copy }, room: None, expires: false });
        }
        let room = self.heap.reserve(&self.medium, item.item_bytes(), epoch::thread_index())?;
        // SAFETY: the room was just reserved.
        let checksum = unsafe { item.write(&self.medium, room.place().offset, 0) };
        Ok(Prepared::in_room(key, room, item.expiry, |position| Some(copy(version_of_item(position, checksum)))))
    }

    /// Puts what was prepared, and takes it, or removes the key, if `allowed`. The callback has been told if the key had expired.
    pub(crate) fn write<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, '_, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Answer<Before>, Error> {
        let answer = self.write_pinned(key, new, allowed)?;
        self.tell_expired(key, &answer);
        Ok(answer)
    }

    /// Tells the callback of a key that had expired before it was written. The caller is not pinned, unless its own caller is: the callback may use
    /// the store.
    #[inline(always)]
    pub(crate) fn tell_expired(&self, key: Key<'_>, answer: &Answer<Before>) {
        if *answer == Answer::Done(Before::Expired) {
            self.expired_hook.tell(key.bytes);
        }
    }

    /// As [`Self::write`], but nobody is told.
    pub(crate) fn write_pinned<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, '_, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Answer<Before>, Error> {
        let _pin = epoch::pin();
        let entered = new.as_ref().map(|new| new.new);
        let (published, old, mut hidden) = match self.publish(key, entered.as_ref(), allowed)? {
            Entered::Published(published, old, hidden) => (published, old, hidden),
            Entered::Unchanged(answer) => {
                // What it goes by may not be durable yet; what is found by now says nothing of the answer.
                self.find(key)?;
                return Ok(answer);
            }
        };
        new.take().into_iter().for_each(|new| new.publish(&self.reaper));
        let before = self.before(old.as_ref());
        published.settle(&self.medium)?;
        if self.medium.breaks(canary::COPY_HIDDEN_LATE) {
            hidden = self.hide(key);
        }
        self.reveal(hidden, entered.as_ref());
        self.retire(old.as_ref());
        before.map(Answer::Done)
    }

    /// Steps 2 to 5.
    fn publish<'a, 'k>(
        &'a self,
        key: Key<'k>,
        new: Option<&New<'_>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Entered<'a, 'k>, Error> {
        loop {
            let buckets = self.table.lock(self.cx(), key.signature);
            let found: Option<At> = buckets.find(key, |position| self.is_key(position, key))?;
            if found.is_none() {
                self.check_absence(|| buckets.damaged_bucket())?;
            }
            if !allowed(found.as_ref().map(|found| &found.slot)) {
                return Ok(Entered::Unchanged(Answer::Unexpected));
            }
            if found.is_none() && new.is_none() {
                return Ok(Entered::Unchanged(Answer::Done(Before::Absent)));
            }
            let old = found.map(|found| found.slot);
            let is_late = self.medium.breaks(canary::COPY_HIDDEN_LATE);
            let mut hidden = if is_late { None } else { self.hide_handing(key, new) };
            if self.medium.breaks(canary::COPY_SHOWN_EARLY) {
                self.reveal(hidden.take(), new);
            }
            let published = match (found, new) {
                (Some(found), None) => Ok(buckets.remove(&found)),
                (Some(found), Some(new)) => Ok(buckets.replace(&found, &new.slot)),
                (None, new) => buckets.insert(&new.expect("where nothing was, something new comes").slot),
            };
            let full = match published {
                Ok(published) => return Ok(Entered::Published(published, old, hidden)),
                Err(full) => full,
            };
            hidden.into_iter().for_each(Write::unchanged);
            self.may_grow()?;
            self.table.split(self.cx(), key.signature, full)?;
        }
    }

    /// Whether a full segment may be split.
    pub(crate) fn may_grow(&self) -> Result<(), Error> {
        match self.growth {
            Growth::Splits => Ok(()),
            Growth::Refused => {
                let limit_bytes = self.table.segment_count() * SEGMENT_BYTES;
                Err(MediumError::Limit { wanted_bytes: limit_bytes + SEGMENT_BYTES, limit_bytes }.into())
            }
        }
    }

    /// What the slot that went says of the key. The caller is pinned.
    pub(crate) fn before(&self, old: Option<&Slot>) -> Result<Before, Error> {
        let Some(old) = old else { return Ok(Before::Absent) };
        let is_past = self.clock.is_past(self.seen(old)?.expiry);
        Ok(if is_past { Before::Expired } else { Before::Present })
    }

    /// Retires the item of a slot that went.
    pub(crate) fn retire(&self, old: Option<&Slot>) {
        let place = old.and_then(Slot::position).and_then(Position::place);
        place.into_iter().for_each(|place| self.cx().retire(Garbage::Place(place)));
    }

    /// Tries a second time what found the region full: free space may turn up. The caller is not pinned, or what waits for
    /// it would not be freed.
    pub(crate) fn with_room<R>(&self, attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        with_room(attempt, || self.make_room())
    }

    /// The sweep may find free space, and so may readers that move on: they are given some time, unless the caller is
    /// one of them.
    #[cold]
    fn make_room(&self) -> Result<(), Error> {
        self.finish_sweep()?;
        while_readers_keep(|| {
            self.collect();
            !self.limbo.is_empty() && !epoch::is_pinned()
        });
        Ok(())
    }
}

pub(crate) fn check_value(len_bytes: u64) -> Result<(), Error> {
    if len_bytes > Limits::VALUE_BYTES_MAX { Err(Error::ValueTooLong { len_bytes }) } else { Ok(()) }
}
