//! Ordered operations (paper, sections 3.2 and 3.3).
//!
//! A scan waits until every ticket taken before the scan began is applied. Then it reads one leaf after the other, and
//! holds nothing in between. It is not a snapshot: each key is visited at most once, in order, with its value at some
//! moment of the scan.

use std::ops::Bound;

use epoch::Pin;
use index::Position;
use pmem::{Dram, Medium};

use super::items::Items;
use super::ordered::Ordered;
use super::paged::{Paged, way};
use super::source::Source;
use crate::item;
use crate::memory::Memory;
use crate::read::Reader;
use engine::{Early, Error, ScanCursor, Visit};
use items::{Item, prefetch_ahead};

/// A key and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Reads the items of a store in key order.
pub(crate) struct Scans<'a, M, D: Dram> {
    pub(super) reader: &'a Reader<M>,
    pub(super) order: &'a Ordered<D>,
    source: Source<'a, M, D>,
}

impl<'a, M: Medium, D: Memory> Scans<'a, M, D> {
    pub(crate) fn new(reader: &'a Reader<M>, order: &'a Ordered<D>, source: Source<'a, M, D>) -> Scans<'a, M, D> {
        Scans { reader, order, source }
    }

    pub(crate) fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let _pin = self.read_page(cursor)?;
        let (medium, mut last) = (self.reader.medium(), None);
        for &position in prefetch_ahead(cursor.page().positions(), |&position| item::request(medium, position)) {
            let Some((key, value)) = self.pair(position)? else { continue };
            if each(key, value).is_break() {
                last = Some(key);
                break;
            }
        }
        match last {
            Some(key) => {
                cursor.continue_after(key);
                Ok(false)
            }
            None => Ok(cursor.follow_page()),
        }
    }

    /// Counts the keys of a page. Unless items may expire, their items need not be read.
    pub(crate) fn count(
        &self,
        cursor: &mut ScanCursor,
        end: Bound<&[u8]>,
        may_expire: impl FnOnce() -> bool,
    ) -> Result<(u64, bool), Error> {
        let _pin = self.read_page(cursor)?;
        let page = cursor.page();
        let is_within = page.next().is_some_and(|next| next_is_before(next, end));
        // Only the item shows whether a key has expired.
        if (is_within || end == Bound::Unbounded) && !may_expire() {
            let count = page.positions().len() as u64;
            return Ok((count, cursor.follow_page()));
        }
        let mut count = 0;
        for &position in page.positions() {
            let Some(item) = self.shown(position)? else { continue };
            if !is_before(item.key, end) {
                return Ok((count, false));
            }
            count += 1;
        }
        Ok((count, cursor.follow_page()))
    }

    pub(super) fn catch_up(&self) -> Result<(), Error> {
        self.order.catch_up(self.source, Early::Wait)
    }

    /// Reads the next leaf. Its items stay while the caller keeps the pin.
    pub(super) fn read_page(&self, cursor: &mut ScanCursor) -> Result<Pin, Error> {
        loop {
            let pin = epoch::pin();
            if let Some(tree) = &*self.order.tree.read() {
                let (from, direction, page) = cursor.parts();
                tree.read_page(&Items(self.reader.medium()), from, way(direction), page)?;
                self.reader.acknowledge_deferred()?;
                return Ok(pin);
            }
            drop(pin);
            // A thread is deleting every key, or the tree was dropped.
            self.catch_up()?;
        }
    }

    /// Returns key and value of an item that a leaf names, unless it has expired. Most items are plain: they are read
    /// in place, without an [`Item`] in memory.
    #[inline(always)]
    fn pair(&self, position: Position) -> Result<Option<Pair<'a>>, Error> {
        // SAFETY: as for `scanned`.
        match unsafe { item::read_plain(self.reader.medium(), position) } {
            Some(plain) if self.reader.is_verified(&plain, u64::MAX) => Ok(Some((plain.key(), plain.value()))),
            _ => self.any_pair(position),
        }
    }

    #[cold]
    #[inline(never)]
    fn any_pair(&self, position: Position) -> Result<Option<Pair<'a>>, Error> {
        Ok(self.shown(position)?.map(|item| (item.key, item.value)))
    }

    /// Returns an item that a leaf names, unless it has expired.
    fn shown(&self, position: Position) -> Result<Option<Item<'a>>, Error> {
        self.reader.unexpired(self.scanned(position)?, position)
    }

    pub(super) fn scanned(&self, position: Position) -> Result<Item<'a>, Error> {
        // SAFETY: a leaf referred to it when the leaf was read, which was after the pin: so it was not retired before.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.reader.verify_value(&item, position)?;
        Ok(item)
    }
}

/// Returns true if every key before `next` is also before `end`.
fn next_is_before(next: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    match (next, end) {
        (Bound::Included(next), Bound::Included(end) | Bound::Excluded(end)) => next <= end,
        _ => false,
    }
}

fn is_before(key: &[u8], end: Bound<&[u8]>) -> bool {
    match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    }
}
