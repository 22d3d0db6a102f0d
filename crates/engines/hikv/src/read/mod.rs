//! Lookups of one key.

mod group;
pub(crate) mod walk;

use std::hint::assert_unchecked;

use index::partitioned_hash::{Absence, Candidate, Lookup, Target};
use index::{PartitionedHash, Position};
use pmem::{Medium, Span};

use crate::canary;
use crate::item;
use engine::{Clock, Error, Expiry, Hasher, Limits, OnFound, PackedLookup, Verify, Witness};
use items::{Item, Plain};

/// Keys whose memory accesses overlap: the number of cache misses that a core has in flight, and some more.
pub(crate) const GROUP_COUNT: usize = 16;

/// The hash index and its items, as lookups use them. A lookup needs neither the allocator nor DRAM.
pub(crate) struct Reader<M> {
    medium: M,
    index: PartitionedHash,
    hasher: Hasher,
    clock: Clock,
    verify: Verify,
}

/// The result of reading a key's home line and one item.
pub(crate) enum ItemLookup<'a> {
    /// The key's item, whose checksum was compared if required.
    Item(Position, Plain<'a>),
    /// The key is absent, as far as this line shows.
    Absent,
    /// A full search is needed.
    Unsure,
}

/// A reader of a part does not compare the checksum of a longer item: it would read the whole value for a few bytes of
/// it.
pub(crate) const COMPARED_FOR_PART_BYTES_MAX: u64 = 4096;

impl<M: Medium> Reader<M> {
    /// Returns a reader that checks nothing, by the system's clock.
    pub(crate) fn new(medium: M, index: PartitionedHash, hasher: Hasher) -> Reader<M> {
        Reader { medium, index, hasher, clock: Clock::default(), verify: Verify::Nothing }
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
    pub(crate) fn index(&self) -> &PartitionedHash {
        &self.index
    }

    #[inline(always)]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline(always)]
    pub(crate) fn signature(&self, key: &[u8]) -> u64 {
        self.hasher.signature(key)
    }

    /// Returns true if a key counts as absent once its home line shows no entry, without a check for damage.
    #[inline(always)]
    pub(crate) fn trusts_absence(&self) -> bool {
        self.verify < Verify::Absence
    }

    /// Returns the item at `position` if it belongs to the key. The caller is pinned, or holds the bucket's lock.
    #[inline(always)]
    pub(crate) fn item_of(&self, position: Position, key: &[u8]) -> Result<Option<Item<'_>>, Error> {
        // SAFETY: the index passes positions to pinned callers, and every caller here stays pinned until it is done
        // with the item.
        let item = unsafe { item::read(&self.medium, position) }?;
        if item.key == key {
            return Ok(Some(item));
        }
        self.other_key(&item, position, key)?;
        Ok(None)
    }

    /// Checks an item whose key is not the key of the lookup. Returns `Ok` if both keys have the same signature, which
    /// is rare, and an error for damage.
    #[cold]
    fn other_key(&self, item: &Item<'_>, position: Position, key: &[u8]) -> Result<(), Error> {
        self.check_signature(self.signature(key), item, position)?;
        check_intact(item, position)
    }

    /// Returns an error unless the item's key has `signature`: otherwise a search for the key would not find the item.
    #[inline(always)]
    pub(crate) fn check_signature(&self, signature: u64, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if self.signature(item.key) == signature {
            return Ok(());
        }
        check_intact(item, position)?;
        Err(Error::Corrupt { offset: position.offset().0, what: "an entry's signature is not that of its item's key" })
    }

    /// Compares the checksum of an item before its value is returned, if required.
    #[inline(always)]
    pub(crate) fn verify_value(&self, item: &Item<'_>, position: Position) -> Result<(), Error> {
        if self.verify >= Verify::Values { check_intact(item, position) } else { Ok(()) }
    }

    /// Waits until items are durable that the reader found outside the index, where no mark shows that they may not be,
    /// or records that the caller waits later (`Acknowledge::acknowledge`).
    #[inline(always)]
    pub(crate) fn acknowledge_deferred(&self) -> Result<(), Error> {
        if let Some(ticket) = self.medium.deferred()
            && !self.medium.breaks(canary::DEFERRED_SCAN_REPORTED)
        {
            let _ = self.medium.acknowledge_met(ticket)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn find(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        loop {
            let found = self.index.find(&self.medium, signature, |position| {
                item::prefetch(&self.medium, position);
                Ok::<_, Error>(self.item_of(position, key)?.map(|item| (position, item)))
            })?;
            if found.is_some() || self.is_sure(signature, key)? {
                return Ok(found);
            }
        }
    }

    /// Returns false if a search that found nothing has to be repeated, and an error if damage hides the key.
    #[inline(always)]
    fn is_sure(&self, signature: u64, key: &[u8]) -> Result<bool, Error> {
        if self.trusts_absence() {
            return Ok(true);
        }
        // SAFETY: the index passes positions to pinned callers, and a searching thread is pinned until it is done.
        let is_of_key = |position| unsafe { item::read(&self.medium, position) }.is_ok_and(|item| item.key == key);
        match self.index.absence(&self.medium, signature, is_of_key) {
            Absence::Sure => Ok(true),
            Absence::Stale => Ok(false),
            Absence::Damaged { at, what } => Err(Error::Corrupt { offset: at.0, what }),
        }
    }

    /// Waits until the present item of the key is durable, for a writer that publishes nothing and reports the key's
    /// state. The writer did not wait for that under its lock; this lookup as a reader does.
    #[cold]
    pub(crate) fn find_again(&self, signature: u64, key: &[u8]) -> Result<(), Error> {
        if self.medium.deferred().is_some() {
            self.find(signature, key)?;
        }
        Ok(())
    }

    /// Returns the item unless it has expired.
    #[inline(always)]
    pub(crate) fn unexpired<'a>(&self, item: Item<'a>, position: Position) -> Result<Option<Item<'a>>, Error> {
        if !self.clock.is_past(item.expiry) {
            return Ok(Some(item));
        }
        check_intact(&item, position)?;
        Ok(None)
    }

    /// Returns the key's item unless it has expired. The caller is pinned.
    #[inline(always)]
    pub(crate) fn find_unexpired(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let Some((position, item)) = self.find(signature, key)? else { return Ok(None) };
        Ok(self.unexpired(item, position)?.map(|item| (position, item)))
    }

    /// Returns the value of a key and its witness, unless the key has expired.
    pub(crate) fn live_witness<'a>(
        &self,
        position: Position,
        item: Item<'a>,
    ) -> Result<Option<(Witness, &'a [u8])>, Error> {
        let live = self.unexpired(item, position)?;
        Ok(live.map(|item| (item::witness(item.header.checksum, position, item.expiry), item.value)))
    }

    /// Prefetches the old item, if there seems to be one, because locking the bucket waits for the write-back of the
    /// new item. If there is none, prefetches the count that the write will change.
    #[inline(always)]
    pub(crate) fn prefetch_old(&self, target: &Target<'_>) -> Option<Candidate> {
        let candidate = self.index.candidate(&self.medium, target.line(), target.signature());
        match candidate {
            Some(candidate) => self.medium.prefetch_line(candidate.position.offset()),
            None => target.prefetch_count(),
        }
        candidate
    }

    /// Returns an error if damage hides an entry that a writer did not find under its lock: the writer would make a
    /// second entry of the key. No other thread enters the key during the call, so the writer's search is not stale.
    #[inline(always)]
    pub(crate) fn refuse_hidden(&self, signature: u64, key: &[u8]) -> Result<(), Error> {
        self.is_sure(signature, key).map(drop)
    }

    /// Returns the item at `position` if it belongs to the key, is in a slot and has no expiry. The caller is pinned,
    /// or holds the bucket's lock.
    #[inline(always)]
    pub(crate) fn plain_of(&self, position: Position, key: &[u8]) -> Option<Plain<'_>> {
        // SAFETY: the index passes positions to pinned callers, as for `item_of`.
        unsafe { item::read_plain_of(&self.medium, item::slot(position)?, key) }
    }

    /// As [`Reader::plain_of`], by the position's slot.
    #[inline(always)]
    fn plain_in(&self, slot: Span, key: &[u8]) -> Option<Plain<'_>> {
        // SAFETY: the index passes positions to pinned callers, as for `item_of`.
        unsafe { item::read_plain_of(&self.medium, slot, key) }
    }

    /// As [`Reader::plain_in`], without a check of the key's length.
    ///
    /// # Safety
    /// The key [is short](is_short).
    #[inline(always)]
    unsafe fn plain_in_of_short(&self, slot: Span, key: &[u8]) -> Option<Plain<'_>> {
        // SAFETY: the caller's promise.
        unsafe { assert_unchecked(is_short(key)) };
        self.plain_in(slot, key)
    }

    /// Returns true if the value of an item without expiry may be returned. Compares the checksum if required, except
    /// for items of more than `compared_bytes_max`.
    #[inline(always)]
    pub(crate) fn is_verified(&self, item: &Plain<'_>, compared_bytes_max: u64) -> bool {
        self.verify < Verify::Values || item.item_bytes() > compared_bytes_max || item.is_intact()
    }

    /// Completes a search with the home line only, if the key has a decided entry in it and does not expire, or is
    /// absent. `lookup` is the result of reading that line, and `item_in` returns the key's item if it is in a slot.
    /// Checksums of items of more than `compared_bytes_max` are not compared. The caller is pinned.
    #[inline(always)]
    fn lookup_item<'a>(
        &self,
        lookup: Lookup,
        compared_bytes_max: u64,
        item_in: impl Fn(Span) -> Option<Plain<'a>>,
    ) -> ItemLookup<'a> {
        match lookup {
            Lookup::Entry(position) => match item::slot(position).and_then(item_in) {
                Some(item) if self.is_verified(&item, compared_bytes_max) => ItemLookup::Item(position, item),
                _ => ItemLookup::Unsure,
            },
            Lookup::Nothing if self.trusts_absence() => ItemLookup::Absent,
            _ => ItemLookup::Unsure,
        }
    }

    /// As [`Reader::lookup_item`], including the read of the home line.
    #[inline(always)]
    fn lookup_item_of(&self, key: &[u8], compared_bytes_max: u64) -> ItemLookup<'_> {
        self.lookup_item(self.lookup_entry(key), compared_bytes_max, |slot| self.plain_in(slot, key))
    }

    /// Reads the key's home line, and prefetches the item that it names.
    #[inline(always)]
    fn lookup_entry(&self, key: &[u8]) -> Lookup {
        let lookup = self.index.lookup(&self.medium, self.signature(key));
        if let Lookup::Entry(position) = lookup {
            item::prefetch(&self.medium, position);
        }
        lookup
    }

    /// Returns the key's value if an optimistic lookup finds it. The caller is pinned.
    #[inline(always)]
    pub(crate) fn lookup_value(&self, key: &[u8]) -> PackedLookup<'_> {
        if !is_short(key) {
            return self.lookup_any_length(key);
        }
        // SAFETY: the key is short (checked above).
        self.lookup_item(self.lookup_entry(key), u64::MAX, |slot| unsafe { self.plain_in_of_short(slot, key) }).pack()
    }

    #[inline(never)]
    fn lookup_any_length(&self, key: &[u8]) -> PackedLookup<'_> {
        match Limits::check_key(key) {
            Ok(()) => self.lookup_item_of(key, u64::MAX).pack(),
            Err(_) => PackedLookup::UNSURE,
        }
    }

    /// Passes the key's value to `found`; checksums of items of more than `compared_bytes_max` are not compared.
    #[inline(always)]
    pub(crate) fn read(&self, key: &[u8], compared_bytes_max: u64, found: &mut OnFound<'_>) -> Result<bool, Error> {
        Limits::check_key(key)?;
        let _pin = epoch::pin();
        match self.lookup_item_of(key, compared_bytes_max) {
            ItemLookup::Item(position, item) => {
                found(item::witness(item.checksum(), position, Expiry::NEVER), Expiry::NEVER, item.value());
                Ok(true)
            }
            ItemLookup::Absent => Ok(false),
            ItemLookup::Unsure => self.find_and_read(key, compared_bytes_max, found),
        }
    }

    /// As [`Reader::read`], by a full search.
    #[cold]
    #[inline(never)]
    fn find_and_read(&self, key: &[u8], compared_bytes_max: u64, found: &mut OnFound<'_>) -> Result<bool, Error> {
        let Some((position, item)) = self.find_unexpired(self.signature(key), key)? else { return Ok(false) };
        if item.header.item_bytes() <= compared_bytes_max {
            self.verify_value(&item, position)?;
        }
        found(item::witness(item.header.checksum, position, item.expiry), item.expiry, item.value);
        Ok(true)
    }
}

/// Returns true for keys of two words. The compiler uses this to omit checks of the length.
#[inline(always)]
fn is_short(key: &[u8]) -> bool {
    (8..=16).contains(&key.len())
}

impl<'a> ItemLookup<'a> {
    #[inline(always)]
    fn pack(self) -> PackedLookup<'a> {
        match self {
            ItemLookup::Item(_, item) => PackedLookup::at(item.value()),
            ItemLookup::Absent => PackedLookup::ABSENT,
            ItemLookup::Unsure => PackedLookup::UNSURE,
        }
    }
}

/// Returns an error unless the item's checksum matches.
#[inline(never)]
pub(crate) fn check_intact(item: &Item<'_>, position: Position) -> Result<(), Error> {
    if item.is_intact() {
        return Ok(());
    }
    Err(Error::Corrupt { offset: position.offset().0, what: "an item's checksum does not match" })
}
