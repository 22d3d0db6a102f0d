//! Finding items: one key, and many whose memory accesses overlap.

pub(crate) mod cached;
pub(crate) mod check;
pub(crate) mod places;
pub(crate) mod walk;

use index::Position;
use index::partitioned_hash::{Absence, Glance, Hint};
use pmem::{Medium, Offset};

use crate::canary;
use crate::item;
use crate::write::check_key;
use crate::{HiKv, Memory};
use engine::{Error, Look, Verify, Version};
use items::{Item, Plain};

/// Keys of a batch whose memory accesses overlap: as many as a core has misses in flight, with some to spare.
pub(crate) const GROUP_COUNT: usize = 16;

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
        // SAFETY: positions are shown by the index to pinned callers, as for `item_of`.
        unsafe { item::read_plain(&self.medium, position) }.filter(|item| item.has_key(key))
    }

    /// Where a key is in its home line, decided, and does not expire, or is not, this is a whole search: `glance` is what a look at
    /// that line tells. Items of more than `compared_bytes_max` are shown without a look at their checksum. The caller is pinned.
    #[inline(always)]
    fn glimpse(&self, glance: Glance, key: &[u8], compared_bytes_max: u64) -> Glimpse<'_> {
        match glance {
            Glance::Entry(position) => match self.plain_of(position, key) {
                Some(item)
                    if self.verify < Verify::Values || item.item_bytes() > compared_bytes_max || item.is_whole() =>
                {
                    Glimpse::Item(position, item)
                }
                _ => Glimpse::Unsure,
            },
            Glance::Nothing if self.verify < Verify::Absence => Glimpse::Absent,
            _ => Glimpse::Unsure,
        }
    }

    /// As [`HiKv::glimpse`], the look at the home line included.
    #[inline(always)]
    fn glimpse_of(&self, key: &[u8], compared_bytes_max: u64) -> Glimpse<'_> {
        let glance = self.index.glance(&self.medium, self.hasher.signature(key));
        if let Glance::Entry(position) = glance {
            item::prefetch(&self.medium, position);
        }
        self.glimpse(glance, key, compared_bytes_max)
    }

    /// The key's value, if a look tells it. The caller is pinned.
    #[inline(always)]
    pub(crate) fn look_for(&self, key: &[u8]) -> Look<'_> {
        // The compiler knows the length of a key of two words, and asks for it no more.
        if (8..=16).contains(&key.len()) { self.glimpse_of(key, u64::MAX).look() } else { self.look_for_any(key) }
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
        found: &mut dyn FnMut(Version, &[u8]),
    ) -> Result<bool, Error> {
        check_key(key)?;
        if let Some(cache) = &self.cache {
            return self.show_cached(cache, key, compared_bytes_max != u64::MAX, found);
        }
        let _pin = epoch::pin();
        match self.glimpse_of(key, compared_bytes_max) {
            Glimpse::Item(position, item) => {
                found(item::version(item.checksum(), position), item.value());
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
        found: &mut dyn FnMut(Version, &[u8]),
    ) -> Result<bool, Error> {
        let Some((position, item)) = self.find_unexpired(self.hasher.signature(key), key)? else { return Ok(false) };
        if item.header.item_bytes() <= compared_bytes_max {
            self.may_show(&item, position)?;
        }
        found(item::version(item.header.checksum, position), item.value);
        Ok(true)
    }

    /// Shows up to [`GROUP_COUNT`] keys' values to `found`, in order.
    pub(crate) fn get_group(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        if let Some(cache) = &self.cache {
            return self.get_each(cache, keys, found);
        }
        let _pin = epoch::pin();
        let mut seen = [None; GROUP_COUNT];
        let seen_count = self.look_for_group(keys, &mut seen);
        seen[..seen_count].iter().enumerate().for_each(|(i, &value)| found(i, value));
        for (i, key) in keys.iter().enumerate().skip(seen_count) {
            if !self.show_searching(key, u64::MAX, &mut |_, value| found(i, Some(value)))? {
                found(i, None);
            }
        }
        Ok(())
    }

    /// The values of up to [`GROUP_COUNT`] keys, up to the first that a look does not tell of: how many are `seen`. The caller is pinned.
    ///
    /// It ends there because a later key must not be looked at first: where others write a batch meanwhile, who has read one key as the batch
    /// left it must not read another as it was before.
    #[inline(always)]
    pub(crate) fn look_for_group<'a>(&'a self, keys: &[&[u8]], seen: &mut [Option<&'a [u8]>]) -> usize {
        let mut aims = [(0, Offset(0)); GROUP_COUNT];
        let mut hints = [Hint::NONE; GROUP_COUNT];
        let lead = self.index.lead();
        for (key, aim) in keys.iter().zip(&mut aims) {
            let signature = self.hasher.signature(key);
            *aim = (signature, self.index.home_line(&self.medium, signature));
        }
        for (&(signature, line), hint) in aims[..keys.len()].iter().zip(&mut hints) {
            *hint = self.index.hint(&self.medium, line, signature).unwrap_or(Hint::NONE);
            item::prefetch(&self.medium, hint.position);
        }
        // Each key is looked at anew: where others write a batch meanwhile, a line of before it may have been left behind.
        for (i, ((key, value), (hint, (signature, _)))) in
            keys.iter().zip(&mut *seen).zip(hints.iter().zip(&aims)).enumerate()
        {
            let glance = self.index.glance_at(&self.medium, lead, *hint, *signature);
            *value = match self.glimpse(glance, key, u64::MAX) {
                Glimpse::Item(_, item) => Some(item.value()),
                Glimpse::Absent => None,
                Glimpse::Unsure => return i,
            };
        }
        keys.len()
    }
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
