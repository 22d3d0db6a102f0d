//! The work of writers for snapshots: keeping the items that they replace.

use index::Position;
use pmem::Medium;

use super::Snapshots;
use super::kept::Version;
use crate::canary;
use crate::item;
use engine::Error;

/// A write of a key, as snapshots see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement<'a> {
    /// The stamp of the new item, or the epoch in which the old one is removed.
    pub(crate) stamp: u32,
    pub(crate) signature: u64,
    pub(crate) key: &'a [u8],
    /// The item that the key had before.
    pub(crate) old: Option<Position>,
}

impl Snapshots {
    /// Returns true if the write may be published; false if its item must be stamped again first. Called under the
    /// bucket's lock, when the item will otherwise certainly be published.
    #[inline(always)]
    pub(crate) fn may_publish<M: Medium>(&self, medium: &M, write: Replacement<'_>) -> Result<bool, Error> {
        if self.has_no_snapshot(write.stamp) {
            return Ok(true);
        }
        if self.stamp() != write.stamp && !medium.breaks(canary::STALE_STAMP) {
            return Ok(false);
        }
        if !medium.breaks(canary::KEPT_AFTER_PUBLISH) {
            self.keep(medium, write)?;
        }
        Ok(true)
    }

    /// Keeps the old item if a live snapshot sees it. Called under the bucket's lock, before the write is published.
    #[inline(always)]
    pub(crate) fn keep<M: Medium>(&self, medium: &M, write: Replacement<'_>) -> Result<(), Error> {
        match write.old {
            Some(old) if self.any_is_live() => self.keep_if_visible(medium, write, old),
            _ => Ok(()),
        }
    }

    #[cold]
    fn keep_if_visible<M: Medium>(&self, medium: &M, write: Replacement<'_>, old: Position) -> Result<(), Error> {
        let live = self.live.read();
        // SAFETY: found in the index, under the bucket's lock.
        let header = unsafe { item::read(medium, old) }?.header;
        if let Some(newest_viewer) = live.newest_viewer(header.epoch, write.stamp) {
            let (from, until) = (header.epoch, write.stamp);
            let version = Version { position: old, item_bytes: header.item_bytes(), from, until };
            self.kept.insert(newest_viewer, write.signature, write.key, version);
        }
        Ok(())
    }
}
