//! Finding items: one key, and many whose memory accesses overlap.

use index::Position;
use pmem::{Canary, Dram, Medium};

use super::HiKv;
use super::item::{self, Item};
use super::order::Order;
use crate::Error;

/// Keys of a batch whose memory accesses overlap: as many as a core has misses in flight, with some to spare.
pub(super) const GROUP_COUNT: usize = 16;

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

    /// For whoever met items elsewhere than in the index, where no mark tells that they may not be durable: they are, once
    /// this has returned, or whoever asked for them waits (`Medium::acknowledge`).
    #[inline(always)]
    pub(super) fn acknowledge_deferred(&self) -> Result<(), Error> {
        if let Some(ticket) = self.medium.deferred()
            && !self.medium.breaks(Canary::DeferredScanTold)
        {
            let _ = self.medium.acknowledge_met(ticket)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn find(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        self.index.find(&self.medium, signature, |position| {
            item::prefetch(&self.medium, position);
            Ok(self.item_of(position, key)?.map(|item| (position, item)))
        })
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
            let item = self.index.find(&self.medium, signature, |position| {
                Ok::<_, Error>(self.item_of(position, key)?.map(|item| (position, item)))
            })?;
            let item = item.map_or(Ok(None), |(position, item)| self.unexpired(item, position))?;
            found(i, item.map(|item| item.value));
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
