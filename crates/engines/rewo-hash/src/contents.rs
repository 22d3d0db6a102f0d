//! The contents of a slot, or of a new one, and their witnesses.

use engine::{Expiry, Witness};
use index::Position;
use index::block_hash::Slot;
use index::cached_table::NewCopy;
use items::Item;

/// The contents of a slot, wherever its item is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotContents<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) expiry: Expiry,
    /// The item's position and the item, if it is larger than a slot.
    pub(crate) item: Option<(Position, Item<'a>)>,
}

impl<'a> SlotContents<'a> {
    /// Returns the witness of the item. A small value is its own version.
    pub(crate) fn witness(&self) -> Witness {
        match &self.item {
            Some((position, item)) => witness_of_item(*position, item.header.checksum, self.expiry),
            None => witness_of_small(self.value),
        }
    }

    /// Returns the length of the item.
    pub(crate) fn item_bytes(&self) -> u64 {
        self.item.as_ref().map_or(0, |(_, item)| item.header.item_bytes())
    }

    /// Returns the copy for the cached table.
    pub(crate) fn copy(&self) -> NewCopy<'a> {
        NewCopy { value: self.value, version: self.witness().words(), expiry_ms: self.expiry.ms() }
    }
}

/// A new slot, and the writer's copy of the item: reading back an item that was streamed past the cache is slow.
#[derive(Clone, Copy)]
pub(crate) struct New<'v> {
    pub(crate) slot: Slot,
    pub(crate) copy: Option<NewCopy<'v>>,
}

/// Returns the witness of an item in the region.
#[inline(always)]
pub(crate) fn witness_of_item(position: Position, checksum: u32, expiry: Expiry) -> Witness {
    Witness::of_item(position.item().word(), checksum, expiry)
}

/// Returns the witness of a value that is in a slot.
pub(crate) fn witness_of_small(value: &[u8]) -> Witness {
    let mut words = [0; 16];
    words[..value.len()].copy_from_slice(value);
    words[15] = 0x80 | value.len() as u8;
    let [low, high] = [0, 8].map(|at| u64::from_le_bytes(*words[at..].first_chunk().expect("it has 16 bytes")));
    Witness::exact([low, high])
}
