//! Writing one key: the item, if it is larger than a slot; then its slot (`index::block_hash`).

use engine::{Answer, Before, Error, Expiry, Limits, while_readers_keep, with_room};
use heap::Reservation;
use heap::layout::SEGMENT_BYTES;
use index::Position;
use index::block_hash::{At, Key, Published, Slot};
use index::cached_table::{Write, canary};
use index::segmented::Garbage;
use items::NewItem;
use pmem::{Dram, Medium, MediumError};

use crate::cached::Hidden;
use crate::reaper::Reaper;
use crate::{Growth, RewoHash};

/// A slot that was made, and room for its item, written and flushed, if that is larger.
pub(crate) struct Prepared<'a, D: Dram> {
    pub(crate) slot: Slot,
    room: Option<Reservation<'a, D>>,
    expires: bool,
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

impl<'a, D: Dram> Prepared<'a, D> {
    /// The slot names the item at the start of `room`, which was written.
    pub(crate) fn in_room(key: Key<'_>, room: Reservation<'a, D>, expiry: Expiry) -> Prepared<'a, D> {
        let slot = Slot::of_item(key.signature, Position::of(room.place()));
        Prepared { slot, room: Some(room), expires: !expiry.is_never() }
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
            self.aim(key);
            self.write(key, &mut Some(self.prepare(key, &item)?), &mut |_| true)
        };
        self.with_room(put).map(drop)
    }

    /// Asks the cache for what a write of the key begins with.
    #[inline(always)]
    pub(crate) fn aim(&self, key: Key<'_>) {
        let _pin = epoch::pin();
        self.table.aim(&self.medium, key.signature);
        self.cached_table().into_iter().for_each(|cache| cache.aim(key.signature));
    }

    /// Step 1.
    pub(crate) fn prepare(&self, key: Key<'_>, item: &NewItem<'_>) -> Result<Prepared<'_, D>, Error> {
        if let Some(slot) = Slot::whole(item.key, item.value).filter(|_| item.expiry.is_never()) {
            return Ok(Prepared { slot, room: None, expires: false });
        }
        let room = self.heap.reserve(&self.medium, item.item_bytes(), epoch::thread_index())?;
        // SAFETY: the room was just reserved.
        unsafe { item.write(&self.medium, room.place().offset, 0) };
        Ok(Prepared::in_room(key, room, item.expiry))
    }

    /// Puts what was prepared, and takes it, or removes the key, if `allowed`. The callback has been told if the key had expired.
    pub(crate) fn write<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Answer<Before>, Error> {
        let answer = self.write_pinned(key, new, allowed)?;
        if answer == Answer::Done(Before::Expired) {
            self.expired_hook.tell(key.bytes);
        }
        Ok(answer)
    }

    /// As [`Self::write`], but nobody is told.
    pub(crate) fn write_pinned<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Answer<Before>, Error> {
        let _pin = epoch::pin();
        let slot = new.as_ref().map(|new| new.slot);
        let (published, old, mut hidden) = match self.publish(key, slot.as_ref(), allowed)? {
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
        self.reveal(hidden, slot.as_ref());
        self.retire(old.as_ref());
        before.map(Answer::Done)
    }

    /// Steps 2 to 5.
    fn publish<'a, 'k>(
        &'a self,
        key: Key<'k>,
        new: Option<&Slot>,
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
                (Some(found), Some(slot)) => Ok(buckets.replace(&found, slot)),
                (None, new) => buckets.insert(new.expect("where nothing was, something new comes")),
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
