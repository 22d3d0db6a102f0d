//! Finds keys, and reads the contents of their slots.

use engine::{Clock, Error, Expiry, Hasher, Limits, PriorState, Verify, Witness};
use heap::PlaceKind;
use index::block_hash::{Content, Key, Slot};
use index::{BlockHash, Position};
use items::{Item, Plain};
use pmem::{Medium, Offset};

use crate::contents::SlotContents;

/// A partial read does not verify the checksum of longer items: that would read the whole value for a few bytes of it.
const COMPARED_FOR_PART_BYTES_MAX: u64 = 4096;

/// The keys of a store: the table in the region, and the rules by which callers see its slots.
pub(crate) struct Keys<M> {
    medium: M,
    hasher: Hasher,
    table: BlockHash,
    clock: Clock,
    verify: Verify,
}

impl<M: Medium> Keys<M> {
    pub(crate) fn new(medium: M, hasher: Hasher, table: BlockHash) -> Keys<M> {
        Keys { medium, hasher, table, clock: Clock::default(), verify: Verify::Nothing }
    }

    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub(crate) fn set_verify(&mut self, verify: Verify) {
        self.verify = verify;
    }

    #[inline(always)]
    pub(crate) fn medium(&self) -> &M {
        &self.medium
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &BlockHash {
        &self.table
    }

    #[inline(always)]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns true if reads verify this much, or more.
    #[inline(always)]
    pub(crate) fn verifies(&self, level: Verify) -> bool {
        self.verify >= level
    }

    #[inline(always)]
    pub(crate) fn key<'k>(&self, key: &'k [u8]) -> Result<Key<'k>, Error> {
        Limits::check_key(key)?;
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
        let damaged = if self.verifies(Verify::Absence) { damaged() } else { None };
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
    fn item(&self, position: Position) -> Result<Item<'_>, Error> {
        let offset = position.offset();
        let capacity_bytes = match position.place().map(|place| place.kind) {
            Some(PlaceKind::Slot(class)) => class.bytes(),
            Some(PlaceKind::Extent) => self.medium.len_bytes().saturating_sub(offset.0),
            _ => return Err(Error::Corrupt { offset: offset.0, what: "a slot names an item of no size class" }),
        };
        // SAFETY: the table returns positions to pinned callers, and the caller stays pinned while it uses the item.
        Ok(unsafe { Item::read(&self.medium, offset, capacity_bytes) }?)
    }

    /// Returns the key's item if `position` names it, in a slot of a size class and without expiry. The caller is
    /// pinned.
    #[inline(always)]
    pub(crate) fn plain_at(&self, position: Position, key: Key<'_>) -> Option<Plain<'_>> {
        let buffer = position.offset().span(position.slot_bytes()?);
        // SAFETY: the table returns positions to pinned callers; no thread stores to the bytes after the item in its
        // slot.
        Plain::of_key(unsafe { self.medium.bytes(buffer) }.ok()?, key.bytes)
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
        if self.verifies(Verify::Values) && (!is_part || seen.item_bytes() <= COMPARED_FOR_PART_BYTES_MAX) {
            self.intact_contents(slot)?;
        }
        Ok(Some(seen))
    }

    /// Returns the value of a slot and its witness, unless the value has expired.
    pub(crate) fn live_witness<'a>(&'a self, slot: &'a Slot) -> Result<Option<(Witness, &'a [u8])>, Error> {
        let seen = self.contents(slot)?;
        Ok((!self.clock.is_past(seen.expiry)).then(|| (seen.witness(), seen.value)))
    }

    /// Returns the state of the key in the old slot. The caller is pinned.
    pub(crate) fn prior_state(&self, old: Option<&Slot>) -> Result<PriorState, Error> {
        let Some(old) = old else { return Ok(PriorState::Absent) };
        let is_past = self.clock.is_past(self.contents(old)?.expiry);
        Ok(if is_past { PriorState::Expired } else { PriorState::Present })
    }
}
