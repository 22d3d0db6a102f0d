//! Finds keys, and reads the contents of their slots.

use engine::{Error, Expiry, Limits, Verify, Witness};
use heap::PlaceKind;
use index::Position;
use index::block_hash::{Content, Key, Slot};
use items::Item;
use pmem::{Dram, Medium, Offset};

use crate::RewoHash;

/// A partial read does not verify the checksum of longer items: that would read the whole value for a few bytes of it.
pub(crate) const COMPARED_FOR_PART_BYTES_MAX: u64 = 4096;

/// The contents of a slot, wherever its item is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotContents<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) expiry: Expiry,
    /// The item's position and the item, if it is larger than a slot.
    item: Option<(Position, Item<'a>)>,
}

impl<'a> SlotContents<'a> {
    /// Returns the witness of the item. A small value is its own version.
    pub(crate) fn witness(&self) -> Witness {
        match &self.item {
            Some((position, item)) => witness_of_item(*position, item.header.checksum, self.expiry),
            None => witness_of_small(self.value),
        }
    }

    /// Returns the item's position and the item, if it is larger than a slot.
    pub(crate) fn item(&self) -> Option<(Position, Item<'a>)> {
        self.item
    }

    /// Returns the length of the item.
    pub(crate) fn item_bytes(&self) -> u64 {
        self.item.as_ref().map_or(0, |(_, item)| item.header.item_bytes())
    }
}

#[inline(always)]
pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    match key.len() {
        len_bytes if len_bytes > Limits::KEY_BYTES_MAX => Err(Error::KeyTooLong { len_bytes }),
        _ => Ok(()),
    }
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

impl<M: Medium, D: Dram> RewoHash<M, D> {
    #[inline(always)]
    pub(crate) fn key<'k>(&self, key: &'k [u8]) -> Result<Key<'k>, Error> {
        check_key(key)?;
        Ok(Key { bytes: key, signature: self.hasher.signature(key) })
    }

    /// Finds the key's slot, expired or not. The caller is pinned.
    #[inline(always)]
    pub(crate) fn find(&self, key: Key<'_>) -> Result<Option<Slot>, Error> {
        let found = self.table.find(&self.medium, key, |position| self.is_key(position, key))?;
        if found.is_none() {
            self.check_absence(|| self.table.damaged_bucket(&self.medium, key.signature))?;
        }
        Ok(found)
    }

    /// Verifies that no damage hides an absent key, if reads verify absences. `damaged` returns the damage's offset.
    #[inline(always)]
    pub(crate) fn check_absence(&self, damaged: impl FnOnce() -> Option<Offset>) -> Result<(), Error> {
        let damaged = if self.verify < Verify::Absence { None } else { damaged() };
        let what = "a slot's bytes are damaged, which may be the key's";
        damaged.map_or(Ok(()), |at| Err(Error::Corrupt { offset: at.0, what }))
    }

    /// Returns true if the item at `position`, which has the key's signature, has the key. The caller is pinned.
    pub(crate) fn is_key(&self, position: Position, key: Key<'_>) -> Result<bool, Error> {
        let item = self.item(position)?;
        if item.key != key.bytes && !(item.is_intact() && self.table.signature(item.key) == key.signature) {
            return Err(Error::Corrupt { offset: position.offset().0, what: "an item does not belong to its slot" });
        }
        Ok(item.key == key.bytes)
    }

    /// Reads the item at a position from the table. The caller is pinned.
    pub(crate) fn item(&self, position: Position) -> Result<Item<'_>, Error> {
        let offset = position.offset();
        let capacity_bytes = match position.place().map(|place| place.kind) {
            Some(PlaceKind::Slot(class)) => class.bytes(),
            Some(PlaceKind::Extent) => self.medium.len_bytes().saturating_sub(offset.0),
            _ => return Err(Error::Corrupt { offset: offset.0, what: "a slot names an item of no size class" }),
        };
        // SAFETY: the table returns positions to pinned callers, and the caller stays pinned while it uses the item.
        Ok(unsafe { Item::read(&self.medium, offset, capacity_bytes) }?)
    }

    /// Reads the contents of a slot. The caller is pinned.
    #[inline(always)]
    pub(crate) fn contents<'a>(&'a self, slot: &'a Slot) -> Result<SlotContents<'a>, Error> {
        match slot.content() {
            Content::Whole { key, value } => Ok(SlotContents { key, value, expiry: Expiry::NEVER, item: None }),
            Content::Item { position, .. } => {
                let item = self.item(position)?;
                let Item { key, value, expiry, .. } = item;
                Ok(SlotContents { key, value, expiry, item: Some((position, item)) })
            }
            Content::Damaged => Err(Error::Corrupt { offset: 0, what: "a slot's bytes are damaged" }),
        }
    }

    /// Reads the contents of a slot, and verifies their checksum. The caller is pinned.
    pub(crate) fn intact_contents<'a>(&'a self, slot: &'a Slot) -> Result<SlotContents<'a>, Error> {
        let seen = self.contents(slot)?;
        let is_whole = slot.is_intact() && seen.item.is_none_or(|(_, item)| item.is_intact());
        let offset = seen.item.map_or(0, |(position, _)| position.offset().0);
        if is_whole { Ok(seen) } else { Err(Error::Corrupt { offset, what: "an item's checksum does not fit" }) }
    }

    /// Reads the contents of a slot for a caller; `None` if the item has expired. `is_part`: the caller needs only a
    /// part of the value, or its length.
    #[inline(always)]
    pub(crate) fn readable_contents<'a>(
        &'a self,
        slot: &'a Slot,
        is_part: bool,
    ) -> Result<Option<SlotContents<'a>>, Error> {
        let seen = self.contents(slot)?;
        if self.clock.is_past(seen.expiry) {
            return Ok(None);
        }
        if self.verify >= Verify::Values && (!is_part || seen.item_bytes() <= COMPARED_FOR_PART_BYTES_MAX) {
            self.intact_contents(slot)?;
        }
        Ok(Some(seen))
    }
}
