//! Finding items: one key.

pub(crate) mod cached;
pub(crate) mod check;
pub(crate) mod group;
pub(crate) mod places;
pub(crate) mod walk;

use std::hint::assert_unchecked;

use index::Position;
use index::partitioned_hash::{Absence, Glance};
use pmem::{Medium, Span};

use crate::canary;
use crate::item;
use crate::write::check_key;
use crate::{HiKv, Memory};
use engine::{Error, Expiry, Look, Verify, Witness};
use items::{Item, Plain};

/// What a look at a key's home line and at one item tells.
pub(crate) enum Glimpse<'a> {
    /// The key's item, whose checksum was compared where it is to be.
    Item(Position, Plain<'a>),
    /// The key is not there, as far as that line tells.
    Absent,
    /// It takes a search.
    Unsure,
}

/// Of longer items a reader of a part does not compare the checksum: it would read all of a value for a few bytes of it.
pub(crate) const COMPARED_FOR_PART_BYTES_MAX: u64 = 4096;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// The key's item, if `position` names it. The caller is pinned, or holds the bucket's lock.
    #[inline(always)]
    pub(crate) fn item_of(&self, position: Position, key: &[u8]) -> Result<Option<Item<'_>>, Error> {
        // SAFETY: positions are shown by the index to pinned callers, and every caller here stays pinned until it is
        // done with the item.
        let item = unsafe { item::read(&self.medium, position) }?;
        if item.key == key {
            return Ok(Some(item));
        }
        self.other_key(&item, position, key)?;
        Ok(None)
    }

    /// For an item with another key than the one looked for: no error if both keys have the same signature, which is rare; damage
    /// is an error.
    #[cold]
    fn other_key(&self, item: &Item<'_>, position: Position, key: &[u8]) -> Result<(), Error> {
        self.findable(self.hasher.signature(key), item, position)?;
        whole(item, position)
    }

    /// An error unless an entry of `signature` may name the item: a search for its key would not find it.
    #[inline(always)]
    pub(crate) fn findable(&self, signature: u64, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if self.hasher.signature(item.key) == signature {
            return Ok(());
        }
        whole(item, position)?;
        Err(Error::Corrupt { offset: position.offset().0, what: "an entry's signature is not that of its item's key" })
    }

    /// Comes before an item's value is shown.
    #[inline(always)]
    pub(crate) fn may_show(&self, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if self.verify >= Verify::Values { whole(item, position) } else { Ok(()) }
    }

    /// For a reader that met items elsewhere than in the index, where no mark tells that they may not be durable: they are once
    /// this has returned, or the caller waits later (`Acknowledge::acknowledge`).
    #[inline(always)]
    pub(crate) fn acknowledge_deferred(&self) -> Result<(), Error> {
        if let Some(ticket) = self.medium.deferred()
            && !self.medium.breaks(canary::DEFERRED_SCAN_TOLD)
        {
            let _ = self.medium.acknowledge_met(ticket)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn find(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        loop {
            let found = self.index.find(&self.medium, signature, |position| {
                item::prefetch(&self.medium, position);
                Ok::<_, Error>(self.item_of(position, key)?.map(|item| (position, item)))
            })?;
            if found.is_some() || self.is_sure(signature, key)? {
                return Ok(found);
            }
        }
    }

    /// False if a search that found nothing has to be repeated. An error if damage hides the key.
    #[inline(always)]
    fn is_sure(&self, signature: u64, key: &[u8]) -> Result<bool, Error> {
        if self.verify < Verify::Absence {
            return Ok(true);
        }
        // SAFETY: the index shows positions to pinned callers, and whoever searches is pinned until it is done.
        let is_of_key = |position| unsafe { item::read(&self.medium, position) }.is_ok_and(|item| item.key == key);
        match self.index.absence(&self.medium, signature, is_of_key) {
            Absence::Sure => Ok(true),
            Absence::Stale => Ok(false),
            Absence::Damaged { at, what } => Err(Error::Corrupt { offset: at.0, what }),
        }
    }

    /// An error if damage hides an entry of the key, which a writer has not found under its lock: it would make a second one.
    /// Nobody else enters the key meanwhile, so what it did not find is not stale.
    #[inline(always)]
    pub(crate) fn refuse_hidden(&self, signature: u64, key: &[u8]) -> Result<(), Error> {
        self.is_sure(signature, key).map(drop)
    }

    /// The key's item, if `position` names it, in a slot and without expiry. The caller is pinned, or holds the bucket's lock.
    #[inline(always)]
    pub(crate) fn plain_of(&self, position: Position, key: &[u8]) -> Option<Plain<'_>> {
        self.plain_in(item::slot(position)?, key)
    }

    /// As [`HiKv::plain_of`], by the position's slot.
    #[inline(always)]
    fn plain_in(&self, slot: Span, key: &[u8]) -> Option<Plain<'_>> {
        // SAFETY: positions are shown by the index to pinned callers, as for `item_of`.
        unsafe { item::read_plain_of(&self.medium, slot, key) }
    }

    /// As [`HiKv::plain_in`], without a question after the key's length.
    ///
    /// # Safety
    /// The key [is short](is_short).
    #[inline(always)]
    unsafe fn plain_in_of_short(&self, slot: Span, key: &[u8]) -> Option<Plain<'_>> {
        // SAFETY: the caller's promise.
        unsafe { assert_unchecked(is_short(key)) };
        self.plain_in(slot, key)
    }

    /// Comes before the value of an item without expiry is shown; items of more than `compared_bytes_max` are shown without a look at their checksum.
    #[inline(always)]
    fn may_show_plain(&self, item: &Plain<'_>, compared_bytes_max: u64) -> bool {
        self.verify < Verify::Values || item.item_bytes() > compared_bytes_max || item.is_whole()
    }

    /// Where a key is in its home line, decided, and does not expire, or is not, this is a whole search: `glance` is what a look at
    /// that line tells, and `item_in` the key's item, if it is in a slot. Items of more than `compared_bytes_max` are shown without a look at
    /// their checksum. The caller is pinned.
    #[inline(always)]
    fn glimpse<'a>(
        &self,
        glance: Glance,
        compared_bytes_max: u64,
        item_in: impl Fn(Span) -> Option<Plain<'a>>,
    ) -> Glimpse<'a> {
        match glance {
            Glance::Entry(position) => match item::slot(position).and_then(item_in) {
                Some(item) if self.may_show_plain(&item, compared_bytes_max) => Glimpse::Item(position, item),
                _ => Glimpse::Unsure,
            },
            Glance::Nothing if self.verify < Verify::Absence => Glimpse::Absent,
            _ => Glimpse::Unsure,
        }
    }

    /// As [`HiKv::glimpse`], the look at the home line included.
    #[inline(always)]
    fn glimpse_of(&self, key: &[u8], compared_bytes_max: u64) -> Glimpse<'_> {
        self.glimpse(self.glance(key), compared_bytes_max, |slot| self.plain_in(slot, key))
    }

    /// The look at the key's home line; the item that it tells of is asked for.
    #[inline(always)]
    fn glance(&self, key: &[u8]) -> Glance {
        let glance = self.index.glance(&self.medium, self.hasher.signature(key));
        if let Glance::Entry(position) = glance {
            item::prefetch(&self.medium, position);
        }
        glance
    }

    /// The key's value, if a look tells it. The caller is pinned.
    #[inline(always)]
    pub(crate) fn look_for(&self, key: &[u8]) -> Look<'_> {
        if !is_short(key) {
            return self.look_for_any(key);
        }
        // SAFETY: it is short (just checked).
        self.glimpse(self.glance(key), u64::MAX, |slot| unsafe { self.plain_in_of_short(slot, key) }).look()
    }

    #[inline(never)]
    fn look_for_any(&self, key: &[u8]) -> Look<'_> {
        match check_key(key) {
            Ok(()) => self.glimpse_of(key, u64::MAX).look(),
            Err(_) => Look::UNSURE,
        }
    }

    /// Shows the key's value to `found`; items of more than `compared_bytes_max` without a look at their checksum.
    #[inline(always)]
    pub(crate) fn show(
        &self,
        key: &[u8],
        compared_bytes_max: u64,
        found: &mut dyn FnMut(Witness, &[u8]),
    ) -> Result<bool, Error> {
        check_key(key)?;
        if let Some(cache) = &self.cache {
            return self.show_cached(cache, key, compared_bytes_max != u64::MAX, found);
        }
        let _pin = epoch::pin();
        match self.glimpse_of(key, compared_bytes_max) {
            Glimpse::Item(position, item) => {
                found(item::witness(item.checksum(), position, Expiry::NEVER), item.value());
                Ok(true)
            }
            Glimpse::Absent => Ok(false),
            Glimpse::Unsure => self.show_searching(key, compared_bytes_max, found),
        }
    }

    /// As [`HiKv::show`], by a search.
    #[cold]
    #[inline(never)]
    fn show_searching(
        &self,
        key: &[u8],
        compared_bytes_max: u64,
        found: &mut dyn FnMut(Witness, &[u8]),
    ) -> Result<bool, Error> {
        let Some((position, item)) = self.find_unexpired(self.hasher.signature(key), key)? else { return Ok(false) };
        if item.header.item_bytes() <= compared_bytes_max {
            self.may_show(&item, position)?;
        }
        found(item::witness(item.header.checksum, position, item.expiry), item.value);
        Ok(true)
    }
}

/// True for keys of two words. Where the compiler knows that, it asks for a key's length no more.
#[inline(always)]
fn is_short(key: &[u8]) -> bool {
    (8..=16).contains(&key.len())
}

impl<'a> Glimpse<'a> {
    #[inline(always)]
    fn look(self) -> Look<'a> {
        match self {
            Glimpse::Item(_, item) => Look::at(item.value()),
            Glimpse::Absent => Look::ABSENT,
            Glimpse::Unsure => Look::UNSURE,
        }
    }
}

/// An error unless the item's checksum fits.
#[inline(never)]
pub(crate) fn whole(item: &Item<'_>, position: Position) -> Result<(), Error> {
    if item.is_whole() {
        return Ok(());
    }
    Err(Error::Corrupt { offset: position.offset().0, what: "an item's checksum does not fit" })
}
