//! Keys and values of leaves, copied under the leaf's lock.

use std::ops::Bound;

use engine::{Error, Expiry};
use pbtree::{Direction, Ended, FreeImmediately, Page, Scan, Seal, Tree, Value};
use pmem::{Dram, Medium};

use crate::copy::{does_not_fit, expiry};
use crate::error::from_tree;

/// The initial buffer of a page: for this many items of its first item's length, but at most `ROOM_BYTES_MAX`.
const ITEMS_EXPECTED: usize = 64;
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// The size of a page of a scan, whose caller may stop at any item: a quarter of the items shown so far. The minimum
/// is the number of items that cost about as much as starting a page; the maximum is a leaf of the usual order.
const PAGE_SHARE: usize = 4;
const PAGE_ITEMS_MIN: usize = 16;
const PAGE_ITEMS_MAX: usize = 64;

/// The treatment of damage by a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// A damaged pair, or a value whose checksum does not fit, is an error.
    Refused,
    /// A leaf has only the items before a damaged pair; values are not checked.
    Skipped,
}

/// An item of a page.
pub(crate) struct Item<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    seal: &'a Seal,
}

impl Item<'_> {
    pub(crate) fn expiry(&self) -> Expiry {
        expiry(self.seal.expiry)
    }

    /// Refuses a value whose checksum does not fit.
    #[inline(always)]
    pub(crate) fn check_intact(&self) -> Result<(), Error> {
        if self.seal.fits(self.value) { Ok(()) } else { Err(does_not_fit(self.seal.offset)) }
    }
}

/// An item's position in the page's bytes.
struct Entry {
    start: usize,
    key_end: usize,
    end: usize,
    seal: Seal,
}

/// The items of a leaf, and the start of the next one.
#[derive(Default)]
pub(crate) struct Copied {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    fence: Vec<u8>,
    has_more: bool,
    /// The number of items of earlier pages, in a scan.
    shown_count: usize,
}

impl Page for Copied {
    #[inline(always)]
    fn item(&mut self, key: &[u8], value: &Value<'_>) {
        if self.bytes.capacity() == 0 {
            self.reserve(key.len() + value.bytes.len());
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value.bytes);
        self.entries.push(Entry { start, key_end, end: self.bytes.len(), seal: value.seal() });
    }

    fn ends_at(&mut self, fence: &[u8]) {
        fence.clone_into(&mut self.fence);
        self.has_more = true;
    }
}

impl Copied {
    #[cold]
    fn reserve(&mut self, item_bytes: usize) {
        self.bytes.reserve((item_bytes * ITEMS_EXPECTED).min(BUFFER_BYTES_MAX));
        self.entries.reserve(ITEMS_EXPECTED);
    }

    /// Iterates over the items.
    pub(crate) fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.entries.iter().map(|entry| self.item_of(entry))
    }

    /// Returns the last item.
    pub(crate) fn last(&self) -> Option<Item<'_>> {
        self.entries.last().map(|entry| self.item_of(entry))
    }

    /// Reads the next page of a scan.
    pub(crate) fn follow<M: Medium, D: Dram>(
        &mut self,
        scan: &mut Scan<'_, M, D>,
        from: Bound<&[u8]>,
    ) -> Result<Ended, Error> {
        self.shown_count += self.entries.len();
        self.empty();
        let items_max = (self.shown_count / PAGE_SHARE).clamp(PAGE_ITEMS_MIN, PAGE_ITEMS_MAX);
        scan.page(from, items_max, self).map_err(from_tree)
    }

    /// Reads the items of the leaf that begins at `from`.
    pub(crate) fn turn<M: Medium, D: Dram>(
        &mut self,
        tree: &Tree<M, D, FreeImmediately>,
        from: Bound<&[u8]>,
        damage: Damage,
    ) -> Result<(), Error> {
        self.empty();
        self.has_more = false;
        match tree.scan(from, Direction::Forward, self).map_err(from_tree) {
            Err(Error::Corrupt { .. }) if damage == Damage::Skipped => Ok(()),
            Ok(_) if damage == Damage::Refused => self.items().try_for_each(|item| item.check_intact()),
            turned => turned.map(drop),
        }
    }

    fn empty(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Returns the bound behind item `i`.
    pub(crate) fn behind(&self, i: usize) -> Option<Bound<&[u8]>> {
        self.entries.get(i).map(|entry| Bound::Excluded(self.item_of(entry).key))
    }

    #[inline(always)]
    fn item_of<'a>(&'a self, entry: &'a Entry) -> Item<'a> {
        let (key, value) = self.bytes[entry.start..entry.end].split_at(entry.key_end - entry.start);
        Item { key, value, seal: &entry.seal }
    }

    /// Returns the start of the next page after this end, if there is one.
    pub(crate) fn behind_all(&self, ended: Ended, direction: Direction) -> Option<Bound<&[u8]>> {
        match ended {
            Ended::AtFence => self.next(direction),
            Ended::Within | Ended::AtEnd => self.last().map(|item| Bound::Excluded(item.key)),
        }
    }

    /// Returns the start of the next leaf, if there is one.
    pub(crate) fn next(&self, direction: Direction) -> Option<Bound<&[u8]>> {
        self.has_more.then_some(match direction {
            Direction::Forward => Bound::Included(&self.fence),
            Direction::Backward => Bound::Excluded(&self.fence),
        })
    }
}
