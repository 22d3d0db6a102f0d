//! The work of writers for snapshots: stamps, and keeping the items that they replace.

use index::Position;
use pmem::Medium;

use super::Disposal;
use super::kept::Version;
use crate::canary;
use crate::item;
use crate::write::publish::Prepared;
use crate::{HiKv, Memory};
use engine::Error;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Returns the disposal of replaced items.
    #[inline(always)]
    pub(crate) fn disposal(&self) -> Disposal<'_, M, D> {
        Disposal { medium: self.reader.medium(), index: self.cx(), snapshots: &self.snapshots }
    }

    /// Returns the stamp of an item that is written now.
    #[inline(always)]
    pub(crate) fn stamp(&self) -> u32 {
        self.snapshots.stamp()
    }

    /// Returns true if an item of this stamp may replace `old`; false if the item must be stamped again first. Called
    /// under the bucket's lock, when the item will otherwise certainly be published.
    #[inline(always)]
    pub(crate) fn may_publish(
        &self,
        stamp: u32,
        signature: u64,
        key: &[u8],
        old: Option<Position>,
    ) -> Result<bool, Error> {
        if self.snapshots.has_no_snapshot(stamp) {
            return Ok(true);
        }
        if self.stamp() != stamp && !self.reader.medium().breaks(canary::STALE_STAMP) {
            return Ok(false);
        }
        if !self.reader.medium().breaks(canary::KEPT_AFTER_PUBLISH) {
            self.keep_for_snapshots(stamp, signature, key, old)?;
        }
        Ok(true)
    }

    /// Keeps `old` if a live snapshot sees it. Called under the bucket's lock, before an item of this stamp replaces
    /// `old`, or before `old` is removed in the epoch `stamp`.
    #[inline(always)]
    pub(crate) fn keep_for_snapshots(
        &self,
        stamp: u32,
        signature: u64,
        key: &[u8],
        old: Option<Position>,
    ) -> Result<(), Error> {
        match old {
            Some(old) if self.snapshots.any_is_live() => self.keep_if_visible(stamp, signature, key, old),
            _ => Ok(()),
        }
    }

    #[cold]
    fn keep_if_visible(&self, stamp: u32, signature: u64, key: &[u8], position: Position) -> Result<(), Error> {
        let live = self.snapshots.live.read();
        // SAFETY: found in the index, under the bucket's lock.
        let header = unsafe { item::read(self.reader.medium(), position) }?.header;
        if let Some(seer) = live.seer(header.epoch, stamp) {
            let version = Version { position, item_bytes: header.item_bytes(), from: header.epoch, until: stamp };
            self.snapshots.kept.insert(seer, signature, key, version);
        }
        Ok(())
    }

    /// Stamps an item again that was written before a snapshot was taken. Reads the whole item for that. The item is
    /// then flushed and ordered before later stores.
    #[cold]
    pub(crate) fn stamp_anew<'r>(&self, item: Prepared<'r, D>) -> Result<Prepared<'r, D>, Error> {
        self.stamp_as(item, self.stamp())
    }

    /// As [`HiKv::stamp_anew`], with this stamp: the epoch that the caller found under its locks.
    #[cold]
    pub(crate) fn stamp_as<'r>(&self, item: Prepared<'r, D>, stamp: u32) -> Result<Prepared<'r, D>, Error> {
        self.restamp(item.position(), stamp)?;
        Ok(Prepared { stamp, ..item })
    }

    /// As [`HiKv::stamp_as`], for the item at `position`.
    pub(crate) fn restamp(&self, position: Position, stamp: u32) -> Result<(), Error> {
        // SAFETY: the item was completely written to space that belongs to the caller, and no other thread has its
        // position.
        let written = unsafe { item::read(self.reader.medium(), position) }?;
        // SAFETY: as above.
        unsafe { items::restamp(self.reader.medium(), position.offset(), &written, stamp) };
        self.reader.medium().order();
        Ok(())
    }
}
