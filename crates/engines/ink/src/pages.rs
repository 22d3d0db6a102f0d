//! Leaves' keys and values, copied under their lock.

use std::ops::Bound;

use engine::{Error, Expiry};
use pbtree::{Direction, Page, Value};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::copy::expiry_of;
use crate::error::told;

/// An item of a page: where its key and value end in the page's bytes, and when it expires.
struct Entry {
    key_end: usize,
    end: usize,
    expiry: Expiry,
}

/// What a leaf had, and where the next one begins.
#[derive(Default)]
pub(crate) struct Copied {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    fence: Vec<u8>,
    has_more: bool,
}

impl Page for Copied {
    fn item(&mut self, key: &[u8], value: &Value<'_>) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value.bytes);
        self.entries.push(Entry { key_end, end: self.bytes.len(), expiry: expiry_of(value) });
    }

    fn ends_at(&mut self, fence: &[u8]) {
        fence.clone_into(&mut self.fence);
    }
}

impl Copied {
    /// Its items.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&[u8], &[u8], Expiry)> {
        let starts = std::iter::once(0).chain(self.entries.iter().map(|entry| entry.end));
        starts.zip(&self.entries).map(|(start, entry)| {
            (&self.bytes[start..entry.key_end], &self.bytes[entry.key_end..entry.end], entry.expiry)
        })
    }

    /// Where the next page begins, if there is one.
    pub(crate) fn next(&self, direction: Direction) -> Option<Bound<&[u8]>> {
        self.has_more.then_some(match direction {
            Direction::Forward => Bound::Included(&self.fence),
            Direction::Backward => Bound::Excluded(&self.fence),
        })
    }
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Takes the next leaf's items.
    pub(crate) fn turn(&self, page: &mut Copied, from: Bound<&[u8]>, direction: Direction) -> Result<(), Error> {
        page.bytes.clear();
        page.entries.clear();
        page.has_more = self.tree.scan(from, direction, page).map_err(told)?;
        Ok(())
    }
}
