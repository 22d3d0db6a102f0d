//! The least that a store can do.
//!
//! A record's number, which its key tells, is its place in an index of 16 bytes a record; the word there tells the slot of its item. A put
//! writes the item to a slot that nobody uses, orders that, and publishes the slot's number: two fences, as every store needs that
//! writes items out of place. A delete publishes that there is none: one. Nothing is compared, and nobody is kept out: a pass reads or
//! writes, never both, and of two threads that put the same record at a time each has a slot of its own.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Bytes, Delayed, LINE_BYTES, Latency, Level, Offset, Persist, Residency};
use pmem_os::{MapOptions, Mapped};

use crate::records::{Records, absent, added_by};
use crate::subject::{Error, Subject};

/// What a store's index has for an entry.
const ENTRY_BYTES: u64 = 16;
/// What an item has beside key and value: lengths and a checksum.
const HEADER: [u8; 16] = [0; 16];
/// Records that may be added, at most: more than a pass adds.
const ADDED_MAX: u64 = 1 << 20;
/// Slots that wait for the next item, more than threads use at a time.
const SPARE_COUNT: usize = 64;

/// See the module.
pub(super) struct Bare {
    medium: Delayed<Mapped>,
    records: Records,
    threads: u64,
    /// Of the index: loaded records, then added ones.
    place_count: u64,
    slot_bytes: u64,
    slot_end: u64,
    /// The number of a free slot, or 0.
    spares: [AtomicU64; SPARE_COUNT],
    /// The next slot that was never used.
    next: AtomicU64,
}

impl Bare {
    /// With room for `records`, and for more that `threads` add, in a file in `home` that has no name any more.
    pub(super) fn create(home: &Path, records: Records, threads: usize, latency: Latency) -> Result<Bare, Error> {
        let place_count = records.count + records.count.min(ADDED_MAX);
        let slot_bytes = (HEADER.len() as u64 + records.item_bytes()).next_multiple_of(LINE_BYTES);
        let index_bytes = (place_count * ENTRY_BYTES).next_multiple_of(slot_bytes);
        let slot_end = index_bytes / slot_bytes + place_count + SPARE_COUNT as u64;
        let path = home.join(".bounds");
        let file = Mapped::create(&path, slot_end * slot_bytes, MapOptions::default())?;
        fs::remove_file(&path)?;
        let medium = Delayed::new(file, latency);
        medium.populate(Offset(0).span(slot_end * slot_bytes));
        let next = AtomicU64::new(index_bytes / slot_bytes);
        let spares = [const { AtomicU64::new(0) }; SPARE_COUNT];
        Ok(Bare { medium, records, threads: threads as u64, place_count, slot_bytes, slot_end, spares, next })
    }

    /// Where the index tells of a record.
    #[inline(always)]
    fn entry(&self, record: u64) -> Offset {
        let place = match added_by(record) {
            None => record & !absent(0),
            Some((thread, number)) => self.records.count + number * self.threads + thread,
        };
        Offset(place % self.place_count * ENTRY_BYTES)
    }

    #[inline(always)]
    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        let record = self.records.record_of(key)?;
        let slot = self.medium.load(self.entry(record), Ordering::Acquire);
        let start = Offset(slot * self.slot_bytes + (HEADER.len() + key.len()) as u64);
        if slot == 0 || record & absent(0) != 0 {
            return None;
        }
        // SAFETY: nobody writes while somebody reads.
        unsafe { self.medium.bytes(start.span(self.records.value_bytes as u64)) }.ok()
    }

    /// A slot that is the caller's alone.
    fn take_slot(&self, place: Offset) -> Result<u64, Error> {
        let slot = match self.spare(place).swap(0, Ordering::AcqRel) {
            0 => self.next.fetch_add(1, Ordering::Relaxed),
            spare => spare,
        };
        if slot < self.slot_end { Ok(slot) } else { Err("no slot is left".into()) }
    }

    /// Keeps a slot that nobody uses any more for the next item, unless another is kept in its place.
    fn keep_slot(&self, place: Offset, slot: u64) {
        self.spare(place).store(slot, Ordering::Release);
    }

    fn spare(&self, place: Offset) -> &AtomicU64 {
        &self.spares[(place.0 / ENTRY_BYTES) as usize % SPARE_COUNT]
    }

    /// Makes `slot` what the index tells; what it told before.
    fn publish(&self, entry: Offset, slot: u64) -> Result<u64, Error> {
        let mut before = self.medium.load(entry, Ordering::Acquire);
        while let Err(other) = self.medium.compare_exchange(entry, before, slot) {
            before = other;
        }
        self.medium.flush(entry.span(8));
        let ticket = self.medium.commit(Level::Strongest);
        self.medium.wait(ticket)?;
        Ok(before)
    }
}

impl Subject for Bare {
    fn name(&self) -> String {
        "the bare machine".into()
    }

    #[inline(always)]
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(found) = self.value(key) else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }

    #[inline(always)]
    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        Ok(self.value(key).map(read).is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let entry = self.entry(self.records.record_of(key).unwrap_or_default());
        self.medium.prefetch_line(entry);
        let slot = self.take_slot(entry)?;
        // SAFETY: the slot is this thread's alone, and the item ends within it.
        unsafe { self.medium.stream(Offset(slot * self.slot_bytes), &[&HEADER, key, value]) };
        self.medium.order();
        match self.publish(entry, slot)? {
            0 => {}
            before => self.keep_slot(entry, before),
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let entry = self.entry(self.records.record_of(key).unwrap_or_default());
        Ok(self.publish(entry, 0)? != 0)
    }
}
