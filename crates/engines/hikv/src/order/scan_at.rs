//! Scans at a snapshot: a page of the tree, merged with the kept items of the page's keys.
//!
//! The caller has caught up since the snapshot was taken, so every change that the snapshot sees is applied. For a key
//! that the snapshot sees, the tree then has the same item, a later one, or none. In the last two cases the item was
//! entered into the side table before the change was published, and so before the change was applied. The page is read
//! first and the side table second: an item that is missing from one is in the other, and an item in both is visited
//! once.

use index::Position;
use pmem::Medium;

use super::paged::Paged;
use super::scan::Scans;
use crate::memory::Memory;
use crate::snapshots::SnapshotReader;
use engine::{Error, ScanCursor, Visit};
use items::Item;

/// The most kept keys that are merged into a page: a page of the tree has some dozens of keys, but its range may have
/// any number of kept keys.
const KEPT_COUNT_MAX: usize = 256;

impl<'a, M: Medium, D: Memory> Scans<'a, M, D> {
    /// As [`Scans::scan`], at the snapshot that `seen` reads.
    pub(crate) fn scan_at(
        &self,
        seen: &SnapshotReader<'a, M>,
        cursor: &mut ScanCursor,
        each: &mut Visit<'_>,
    ) -> Result<bool, Error> {
        let _pin = self.read_page(cursor)?;
        let mut items = Vec::new();
        for &position in cursor.page().positions() {
            let item = self.scanned(position)?;
            items.extend(seen.version(position, item)?.map(|(_, item)| item));
        }
        let (kept, cut) = seen.kept_within(cursor.page_bounds(), cursor.is_backward(), KEPT_COUNT_MAX);
        self.reader.acknowledge_deferred()?;
        self.merge_kept(seen, &mut items, &kept, cursor.is_backward())?;
        for item in items {
            let is_beyond = cut.as_ref().is_some_and(|cut| cursor.comes_before(cut, item.key));
            if is_beyond {
                break;
            }
            if each(item.key, item.value).is_break() {
                cursor.continue_after(item.key);
                return Ok(false);
            }
        }
        match cut {
            Some(cut) => {
                cursor.continue_after(&cut);
                Ok(true)
            }
            None => Ok(cursor.follow_page()),
        }
    }

    fn merge_kept(
        &self,
        seen: &SnapshotReader<'a, M>,
        items: &mut Vec<Item<'a>>,
        kept: &[Position],
        is_backward: bool,
    ) -> Result<(), Error> {
        if kept.is_empty() {
            return Ok(());
        }
        for &position in kept {
            let item = self.scanned(position)?;
            items.extend(seen.unexpired(position, item)?.map(|(_, item)| item));
        }
        items.sort_unstable_by_key(|item| item.key);
        items.dedup_by_key(|item| item.key);
        if is_backward {
            items.reverse();
        }
        Ok(())
    }
}
