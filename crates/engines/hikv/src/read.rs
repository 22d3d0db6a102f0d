//! Finding items: one key, and many whose memory accesses overlap.

use index::Position;
use index::partitioned_hash::Absence;
use pmem::Medium;

use super::item;
use super::{HiKv, Memory};
use crate::canary;
use engine::{Error, Verify};
use items::Item;

/// Keys of a batch whose memory accesses overlap: as many as a core has misses in flight, with some to spare.
pub(super) const GROUP_COUNT: usize = 16;

/// Of longer items a reader of a part does not compare the checksum: it would read all of a value for a few bytes of it.
const COMPARED_FOR_PART_BYTES_MAX: u64 = 4096;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// The key's item, if `position` names it. The caller is pinned, or holds the bucket's lock.
    #[inline(always)]
    pub(super) fn item_of(&self, position: Position, key: &[u8]) -> Result<Option<Item<'_>>, Error> {
        // SAFETY: positions are shown by the index to pinned callers, and every caller here stays pinned until it is
        // done with the item.
        let item = unsafe { item::read(&self.medium, position) }?;
        if item.key == key {
            return Ok(Some(item));
        }
        self.other_key(&item, position, key)?;
        Ok(None)
    }

    /// Two keys of one signature are rare, damage is not to be mistaken for them.
    #[cold]
    fn other_key(&self, item: &Item<'_>, position: Position, key: &[u8]) -> Result<(), Error> {
        self.findable(self.hasher.signature(key), item, position)?;
        whole(item, position)
    }

    /// An error unless an entry of `signature` may name the item: a search for its key would not find it.
    #[inline(always)]
    pub(super) fn findable(&self, signature: u64, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if self.hasher.signature(item.key) == signature {
            return Ok(());
        }
        whole(item, position)?;
        Err(Error::Corrupt { offset: position.offset().0, what: "an entry's signature is not that of its item's key" })
    }

    /// Comes before an item's value is shown.
    #[inline(always)]
    pub(super) fn may_show(&self, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if self.verify >= Verify::Values { whole(item, position) } else { Ok(()) }
    }

    /// Comes before a part of an item's value is shown, or its length.
    #[inline(always)]
    pub(super) fn may_show_part(&self, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if item.header.item_bytes() > COMPARED_FOR_PART_BYTES_MAX { Ok(()) } else { self.may_show(item, position) }
    }

    /// For whoever met items elsewhere than in the index, where no mark tells that they may not be durable: they are, once
    /// this has returned, or whoever asked for them waits (`Medium::acknowledge`).
    #[inline(always)]
    pub(super) fn acknowledge_deferred(&self) -> Result<(), Error> {
        if let Some(ticket) = self.medium.deferred()
            && !self.medium.breaks(canary::DEFERRED_SCAN_TOLD)
        {
            let _ = self.medium.acknowledge_met(ticket)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn find(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
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
    pub(super) fn refuse_hidden(&self, signature: u64, key: &[u8]) -> Result<(), Error> {
        self.is_sure(signature, key).map(drop)
    }

    /// Shows up to [`GROUP_COUNT`] keys' values to `found`, in order.
    pub(super) fn get_group(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
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
            let item = self.find_unexpired(signature, key)?;
            item.map_or(Ok(()), |(position, item)| self.may_show(&item, position))?;
            found(i, item.map(|(_, item)| item.value));
        }
        Ok(())
    }
}

/// An error unless the item's checksum fits.
#[inline(never)]
pub(super) fn whole(item: &Item<'_>, position: Position) -> Result<(), Error> {
    if item.is_whole() {
        return Ok(());
    }
    Err(Error::Corrupt { offset: position.offset().0, what: "an item's checksum does not fit" })
}
