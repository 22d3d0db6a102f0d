//! The least work that any store can do.
//!
//! A record's number, which is computed from its key, selects one of the index's entries of 16 bytes; the word there
//! holds the slot of the item. A put writes the item to a free slot, orders that, and publishes the slot's number: two
//! fences, the minimum for a store that writes items out of place. A delete publishes that there is no item: one fence.
//! Nothing is compared or locked. That is sound because a pass either reads or writes, never both, and two threads that
//! put the same record at the same time use separate slots. A scan has its slot numbers in a row, in volatile memory,
//! and prefetches the items.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;
use pmem::{Bytes, Delayed, Delays, LINE_BYTES, Latency, Level, Offset, Persist, Probed, Residency};
use pmem_os::{HostDram, MapOptions, Mapped};

use crate::config::Config;
use crate::records::{Records, absent, added_by};
use crate::subject::{Error, Need, Subject};

use super::in_order::InOrder;

/// An index entry, as in any store.
const ENTRY_BYTES: u64 = 16;
/// An item's bytes in addition to key and value: lengths and a checksum.
const HEADER: [u8; 16] = [0; 16];
/// The maximum number of added records: more than a pass adds.
const ADDED_MAX: u64 = 1 << 20;
/// Spare slots for the next items; more with many threads.
const SPARE_COUNT_MIN: usize = 64;
/// Places that are tried for a freed slot.
const KEPT_NEAR_COUNT: usize = 4;
/// The number of times that a thread searches for a slot that another thread is about to free.
const SWEEP_COUNT_MAX: usize = 1000;
/// Items that a scan prefetches: with more or fewer it is slower.
const ITEMS_AHEAD: usize = 6;

/// The minimal store; see the module.
pub(super) struct Bare {
    medium: Delayed<Mapped>,
    records: Records,
    threads: u64,
    /// Entries of the index: loaded records, then added ones.
    place_count: u64,
    slot_bytes: u64,
    slot_end: u64,
    /// Each holds the number of a free slot, or 0.
    spares: Box<[AtomicU64]>,
    /// Free slots for which `spares` had no place: threads that met at one have used unused slots.
    more: Mutex<Vec<u64>>,
    /// The next slot that was never used.
    next: AtomicU64,
    /// The loaded records in key order, once scans need it.
    in_order: OnceLock<InOrder>,
}

impl Bare {
    /// Creates a store with space for the records, and for added ones if the workload `grows`, in an unlinked file in
    /// `home`.
    pub(super) fn create(home: &Path, config: &Config, grows: bool, latency: Latency) -> Result<Bare, Error> {
        let Config { records, threads, .. } = *config;
        let place_count = records.count + if grows { records.count.min(ADDED_MAX) } else { 0 };
        let slot_bytes = (HEADER.len() as u64 + records.item_bytes()).next_multiple_of(LINE_BYTES);
        let index_bytes = (place_count * ENTRY_BYTES).next_multiple_of(slot_bytes);
        let spares: Box<[AtomicU64]> = (0..SPARE_COUNT_MIN.max(2 * threads)).map(|_| AtomicU64::new(0)).collect();
        let slot_end = index_bytes / slot_bytes + place_count + spares.len() as u64;
        let path = home.join(".bounds");
        let file = Mapped::create(&path, slot_end * slot_bytes, MapOptions::default())?;
        fs::remove_file(&path)?;
        let delays = Delays::new(latency, &HostDram).ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
        let medium = Probed::with_probe(file, delays);
        medium.populate(Offset(0).span(slot_end * slot_bytes));
        let next = AtomicU64::new(index_bytes / slot_bytes);
        Ok(Bare {
            medium,
            records,
            threads: threads as u64,
            place_count,
            slot_bytes,
            slot_end,
            spares,
            more: Mutex::default(),
            next,
            in_order: OnceLock::new(),
        })
    }

    /// Returns the index entry of a record.
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
        // SAFETY: no thread writes during a pass that reads.
        unsafe { self.medium.bytes(start.span(self.records.value_bytes as u64)) }.ok()
    }

    fn put_loaded_in_order(&self) -> InOrder {
        let mut key = vec![0; self.records.key_bytes];
        let item = |record| {
            self.records.write_key(record, &mut key);
            (self.start_of(&key), self.medium.load(self.entry(record), Ordering::Acquire))
        };
        InOrder::of((0..self.records.count).map(item).collect())
    }

    /// Returns the bytes that distinguish keys, as a number in key order.
    #[inline(always)]
    fn start_of(&self, key: &[u8]) -> u64 {
        key.get(self.records.shared_bytes..).and_then(<[u8]>::first_chunk).map_or(0, |start| u64::from_be_bytes(*start))
    }

    #[inline(always)]
    fn ask_for(&self, slot: u64) {
        let lines = 0..self.slot_bytes / LINE_BYTES;
        lines.for_each(|line| self.medium.prefetch_line(Offset(slot * self.slot_bytes + line * LINE_BYTES)));
    }

    /// Reserves a slot: a freed one, one that was never used, or the one that the record had before it was deleted.
    /// There are more slots than threads use at a time, so a slot that is freed behind a searching thread is found when
    /// it searches again.
    fn take_slot(&self, place: Offset) -> Result<u64, Error> {
        let kept = |spare: &AtomicU64| Some(spare.swap(0, Ordering::AcqRel)).filter(|&slot| slot != 0);
        let fresh = || {
            let is_left = self.next.load(Ordering::Relaxed) < self.slot_end;
            is_left.then(|| self.next.fetch_add(1, Ordering::Relaxed)).filter(|&slot| slot < self.slot_end)
        };
        let any = |_| {
            let found = (1..=self.spares.len()).find_map(|further| kept(self.spare(place, further)));
            found.or_else(|| self.more.lock().pop()).or_else(|| {
                thread::yield_now();
                None
            })
        };
        let left = || {
            let slot = self.medium.load(place.plus(8), Ordering::Acquire);
            (slot != 0 && self.medium.compare_exchange(place.plus(8), slot, 0).is_ok()).then_some(slot)
        };
        let first = kept(self.spare(place, 0)).or_else(fresh).or_else(left);
        let slot = first.or_else(|| (0..SWEEP_COUNT_MAX).find_map(any));
        slot.ok_or_else(|| "no slot is left".into())
    }

    /// Keeps a freed slot for another item.
    fn keep_slot(&self, place: Offset, slot: u64) {
        let mut displaced = slot;
        for further in 0..KEPT_NEAR_COUNT {
            displaced = self.spare(place, further).swap(displaced, Ordering::AcqRel);
            if displaced == 0 {
                return;
            }
        }
        self.more.lock().push(displaced);
    }

    #[inline(always)]
    fn spare(&self, place: Offset, further: usize) -> &AtomicU64 {
        &self.spares[((place.0 / ENTRY_BYTES) as usize + further) % self.spares.len()]
    }

    /// Makes the index point to `slot`; returns the previous slot.
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

    fn offers(&self, _need: Need) -> bool {
        true
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
        // SAFETY: only this thread uses the slot, and the item ends within it.
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
        let before = self.publish(entry, 0)?;
        if before != 0 {
            // Deleted records are put back between two passes.
            self.medium.store(entry.plus(8), before, Ordering::Release);
        }
        Ok(before != 0)
    }

    fn put_in_order(&self) -> Result<(), Error> {
        self.in_order.get_or_init(|| self.put_loaded_in_order());
        Ok(())
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let slots = self.in_order.get().ok_or("keys were not put in order")?.from(self.start_of(from));
        slots.iter().take(ITEMS_AHEAD).for_each(|&slot| self.ask_for(slot));
        for (i, &slot) in slots.iter().enumerate() {
            slots.get(i + ITEMS_AHEAD).into_iter().for_each(|&ahead| self.ask_for(ahead));
            let item = Offset(slot * self.slot_bytes + HEADER.len() as u64).span(self.records.item_bytes());
            // SAFETY: no thread writes during a pass that reads.
            let (key, value) = unsafe { self.medium.bytes(item) }?.split_at(self.records.key_bytes);
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workload::Workload;

    #[test]
    fn scans_show_the_records_in_order() {
        let records = Records { count: 300, key_bytes: 20, shared_bytes: 4, value_bytes: 64 };
        let (workloads, plan) = (vec![Workload::Scan], None);
        let config = Config { workloads, records, pass: Duration::ZERO, threads: 1, plan, keeps_order: false, seed: 0 };
        let place = tempfile::tempdir().expect("there is space");
        let bare = Bare::create(place.path(), &config, false, Latency::default()).expect("there is space");
        let (mut key, mut value) = (vec![0; 20], vec![0; 64]);
        for record in 0..records.count {
            records.write_key(record, &mut key);
            crate::records::stamp(record, 0, &mut value);
            bare.put(&key, &value).expect("a slot is left");
        }
        bare.put_in_order().expect("nothing fails");
        assert_eq!(crate::scans::count_right(&bare, records).expect("nothing fails"), records.count);
        let mut scans = crate::scans::Scans::new(records);
        for record in 0..records.count {
            records.write_key(record, &mut key);
            assert!(scans.copy(&bare, &key, 50).expect("nothing fails"), "from record {record}");
        }
    }

    /// Threads that put the same few records lose no slot, and each value is intact.
    #[test]
    fn slots_are_enough_for_ever() {
        let records = Records { count: 40, key_bytes: 16, shared_bytes: 0, value_bytes: 64 };
        let (workloads, pass, plan) = (vec![Workload::Update], Duration::ZERO, None);
        let config = Config { workloads, records, pass, threads: 3, plan, keeps_order: false, seed: 0 };
        let place = tempfile::tempdir().expect("there is space");
        let bare = Bare::create(place.path(), &config, false, Latency::default()).expect("there is space");
        let (mut key, mut value) = ([0; 16], Vec::new());
        thread::scope(|scope| {
            for thread in 0..3_u64 {
                let bare = &bare;
                scope.spawn(move || {
                    let (mut key, mut value) = ([0; 16], [0; 64]);
                    for number in 0..20_000 {
                        records.write_key((number + thread) % records.count, &mut key);
                        crate::records::stamp((number + thread) % records.count, number, &mut value);
                        bare.put(&key, &value).expect("a slot is left");
                    }
                });
            }
        });
        let kept =
            bare.spares.iter().filter(|spare| spare.load(Ordering::Relaxed) != 0).count() + bare.more.lock().len();
        let unused = bare.slot_end - bare.next.load(Ordering::Relaxed).min(bare.slot_end);
        assert_eq!(kept as u64 + unused, bare.spares.len() as u64, "all slots except one per record are free");
        for record in 0..records.count {
            records.write_key(record, &mut key);
            assert!(bare.get_into(&key, &mut value).expect("it is read") && records.is_item(&key, &value));
        }
    }
}
