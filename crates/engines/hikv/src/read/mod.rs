//! Finding items: one key, and many whose memory accesses overlap.

pub(crate) mod cached;
pub(crate) mod check;
pub(crate) mod places;
pub(crate) mod walk;

use arrayvec::ArrayVec;
use index::Position;
use index::partitioned_hash::{Absence, Glance};
use pmem::Medium;

use crate::canary;
use crate::item;
use crate::write::check_key;
use crate::{HiKv, Memory};
use engine::{Error, Verify, Version};
use items::{Item, Plain};

/// Keys of a batch whose memory accesses overlap: as many as a core has misses in flight, with some to spare.
pub(crate) const GROUP_COUNT: usize = 16;

/// What a look at a key's home line and at one item tells.
pub(crate) enum Glimpse<'a> {
    /// The key's item, of which the checksum was not compared.
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
        unsafe { item::read_plain(&self.medium, position) }.filter(|item| is_same(item.key(), key))
    }

    /// Where a key is in its home line, decided, and does not expire, or is not, this is a whole search: `glance` is what a look at
    /// that line tells. The caller is pinned.
    #[inline(always)]
    fn glimpse(&self, glance: Glance, key: &[u8]) -> Glimpse<'_> {
        match glance {
            Glance::Entry(position) => {
                self.plain_of(position, key).map_or(Glimpse::Unsure, |item| Glimpse::Item(position, item))
            }
            Glance::Nothing if self.verify < Verify::Absence => Glimpse::Absent,
            _ => Glimpse::Unsure,
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
        let signature = self.hasher.signature(key);
        let glance = self.index.glance(&self.medium, signature);
        if let Glance::Entry(position) = glance {
            item::prefetch(&self.medium, position);
        }
        match self.glimpse(glance, key) {
            Glimpse::Item(position, item)
                if self.verify < Verify::Values || item.item_bytes() > compared_bytes_max || item.is_whole() =>
            {
                found(item::version(item.checksum(), position), item.value());
                Ok(true)
            }
            Glimpse::Absent => Ok(false),
            _ => self.show_searching(signature, key, compared_bytes_max, found),
        }
    }

    /// As [`HiKv::show`], by a search.
    #[cold]
    #[inline(never)]
    fn show_searching(
        &self,
        signature: u64,
        key: &[u8],
        compared_bytes_max: u64,
        found: &mut dyn FnMut(Version, &[u8]),
    ) -> Result<bool, Error> {
        let Some((position, item)) = self.find_unexpired(signature, key)? else { return Ok(false) };
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
        let lead = self.index.lead();
        let signed: ArrayVec<_, GROUP_COUNT> = keys
            .iter()
            .map(|key| {
                let signature = self.hasher.signature(key);
                (signature, self.index.home_line(&self.medium, signature))
            })
            .collect();
        let hints: ArrayVec<_, GROUP_COUNT> = signed
            .iter()
            .map(|&(signature, line)| {
                let hint = self.index.hint(&self.medium, line, signature);
                if let Some(hint) = hint {
                    item::prefetch(&self.medium, hint.position);
                }
                (signature, hint)
            })
            .collect();
        // Each key is looked at anew: where others write a batch meanwhile, a line of before it may have been left behind.
        for (i, (key, (signature, hint))) in keys.iter().zip(hints).enumerate() {
            let glance = self.index.glance_at(&self.medium, lead, hint, signature);
            match self.glimpse(glance, key) {
                Glimpse::Item(_, item) if self.verify < Verify::Values || item.is_whole() => {
                    found(i, Some(item.value()))
                }
                Glimpse::Absent => found(i, None),
                _ => self.show_one_of(i, signature, key, &mut found)?,
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn show_one_of(
        &self,
        i: usize,
        signature: u64,
        key: &[u8],
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let item = self.find_unexpired(signature, key)?;
        item.map_or(Ok(()), |(position, item)| self.may_show(&item, position))?;
        found(i, item.map(|(_, item)| item.value));
        Ok(())
    }
}

/// Keys of the usual lengths are compared by two words: a call costs more.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    match (a.first_chunk::<8>(), a.last_chunk::<8>()) {
        (Some(first), Some(last)) if a.len() <= 16 && a.len() == b.len() => {
            b.first_chunk() == Some(first) && b.last_chunk() == Some(last)
        }
        _ => a == b,
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
