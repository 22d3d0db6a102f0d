//! Several keys changed as one step, of whatever number: each bucket is written anew as a whole, from a record.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 items written, flushed | nothing |
//! | 2 all buckets locked, segment by segment; copies of them changed in volatile memory | nothing |
//! | 3 the record: the changed buckets as they are to be; streamed, ordered | nothing |
//! | 4 the *overlay* shown to readers: the same buckets, undecided; counters + 1 | nothing |
//! | 5 the batch word names the record; published, its commit asked for | nothing, or all: opening carries it out |
//! | 6 the overlay is decided: readers of these buckets read it in their place | the same |
//! | 7 the buckets are stored, flushed; ordered. On a log they have their lock bits, and are published | the same |
//! | 8 the word is cleared; ordered. The overlay goes, the locks too, the record is free | all |
//! | 9 the commit is waited for | all |
//!
//! Only the batch writes to its buckets from 2 to 8, so its record stays true. A batch that finds no room in 2 lets go of all
//! locks, splits, and begins again. One batch at a time is carried out: it has the turn.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use heap::layout::batch_word;
use heap::{BatchState, BatchWord, HeapError, Reservation};
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, MediumError, Offset, Ticket, crc32c};

use super::canary;
use super::find::Key;
use super::image::{Image, Words};
use super::layout::{BUCKET_BYTES, FILLED_MAX, bucket, choices};
use super::segment::Segment;
use super::write::{Full, mark_unlinked};
use super::{BlockHash, Slot};
use crate::Position;
use crate::segmented::directory::Retired;
use crate::segmented::{Context, Garbage, Segmented, Table};
use crate::shared::Locked;

/// The word that names the record, of those that the region has.
const WORD: usize = 0;
/// Bytes of a record before its first bucket: how many there are, 4; CRC-32C of them, 4; zero.
const HEADER_BYTES: usize = 16;
/// Bytes of one bucket in it: where it lies, 8; zero; what it holds.
const ENTRY_BYTES: usize = 16 + BUCKET_BYTES as usize;

/// The right to carry a batch out.
pub struct Turn<'a>(#[expect(dead_code, reason = "held for its end alone")] MutexGuard<'a, ()>);

/// What a batch makes of buckets.
#[derive(Debug)]
pub(super) struct Overlay {
    images: BTreeMap<u64, Image>,
    is_decided: AtomicBool,
}

impl Overlay {
    pub(super) fn image(&self, at: Offset) -> Option<&Image> {
        self.images.get(&at.0)
    }

    #[inline(always)]
    pub(super) fn is_decided(&self) -> bool {
        self.is_decided.load(Ordering::Acquire)
    }
}

/// Segments that have no room for all of a batch, each with the signature of a key that found none.
#[derive(Clone, Debug)]
pub struct NoRoom(Vec<(u64, Full)>);

/// The buckets of several keys, locked, and what is to become of them.
pub struct Batch<'a, M, D: Dram> {
    table: &'a BlockHash,
    cx: Context<'a, M, D>,
    _locks: Vec<Locked<'a>>,
    images: BTreeMap<u64, Changed<'a>>,
    replaced: Vec<Slot>,
    /// Segments without room, and the signature of a key that found none.
    full: BTreeMap<u64, u64>,
}

/// A bucket's copy.
struct Changed<'a> {
    image: Image,
    number: usize,
    segment: &'a Segment,
    is_changed: bool,
}

/// A slot that was found in a batch.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// What it holds.
    pub slot: Slot,
    at: u64,
    i: usize,
}

impl BlockHash {
    /// Waits for the turn.
    pub fn batch_turn(&self) -> Turn<'_> {
        Turn(self.turn.lock())
    }

    /// Step 2: locks the buckets of all these signatures, which ascend. The caller has the turn.
    pub fn lock_batch<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        _turn: &Turn<'_>,
        signatures: &[u64],
    ) -> Batch<'a, M, D> {
        loop {
            let (mut locks, mut segments) = (Vec::new(), Vec::new());
            let mut rest = signatures;
            while let Some(&first) = rest.first() {
                let segment = self.segment(first);
                let in_it = |signature: &u64| {
                    self.geometry.partition(*signature) == self.geometry.partition(first)
                        && self.geometry.prefix(*signature, segment.depth()) == segment.prefix()
                };
                let (own, others) = rest.split_at(rest.iter().take_while(|signature| in_it(signature)).count());
                let mut numbers: Vec<_> = own.iter().flat_map(|signature| choices(*signature)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                locks.extend(numbers.into_iter().map(|number| segment.lock(number)));
                segments.push(segment);
                rest = others;
            }
            if segments.iter().all(|segment| !segment.is_dead()) {
                segments.iter().for_each(|segment| segment.make_durable(cx.medium));
                return Batch {
                    table: self,
                    cx,
                    _locks: locks,
                    images: BTreeMap::new(),
                    replaced: Vec::new(),
                    full: BTreeMap::new(),
                };
            }
        }
    }

    /// Makes room for a batch of these signatures, which ascend, where it found none. The caller holds no bucket.
    ///
    /// # Errors
    /// The allocator's.
    pub fn split_for_batch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        NoRoom(full): NoRoom,
        signatures: &[u64],
    ) -> Result<(), HeapError> {
        full.into_iter().try_for_each(|(signature, full)| self.split_for(cx, signature, full, signatures))
    }

    /// Makes the batch durable that is decided and not carried out, for a thread that saw it.
    #[cold]
    pub(super) fn settle_batch<M: Medium>(&self, medium: &M) -> Result<(), MediumError> {
        if medium.is_writable() {
            let at = batch_word(WORD);
            let _ = medium.acknowledge_met(medium.commit_published(at, at.0))?;
        }
        Ok(())
    }

    /// A bucket as it is, or as a batch has decided.
    pub(super) fn decided_image<M: Medium>(&self, medium: &M, at: Offset) -> Image {
        let overlay = self.overlay().filter(|overlay| overlay.is_decided());
        overlay.and_then(|overlay| overlay.image(at)).copied().unwrap_or_else(|| Image::of(medium, at))
    }
}

impl<'a, M: Medium, D: Dram> Batch<'a, M, D> {
    /// The buckets of a key, copied.
    fn buckets(&mut self, signature: u64) -> Vec<u64> {
        // Its buckets are locked, so that it is the signature's still.
        let segment: &'a Segment = self.table.segment(signature);
        let of = |segment| choices(signature).map(|number| (number, bucket(segment, number)));
        let all: Vec<_> = segment.offsets().flat_map(of).collect();
        for &(number, at) in &all {
            let copy = || Changed { image: Image::of(self.cx.medium, at), number, segment, is_changed: false };
            self.images.entry(at.0).or_insert_with(copy);
        }
        all.into_iter().map(|(_, at)| at.0).collect()
    }

    /// The key's slot. Of twins one stays.
    ///
    /// # Errors
    /// Those of `is_key`.
    pub fn find<E>(
        &mut self,
        key: Key<'_>,
        mut is_key: impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<Found>, E> {
        let mut found = None;
        for at in self.buckets(key.signature) {
            let changed = self.images.get_mut(&at).expect("it was copied");
            let slots: Vec<_> = changed.image.slots().collect();
            for (i, slot) in slots {
                if !key.is_in(&slot, &mut is_key)? {
                } else if found.is_none() {
                    found = Some(Found { slot, at, i });
                } else {
                    changed.image.clear(i);
                    changed.is_changed = true;
                }
            }
        }
        Ok(found)
    }

    /// Puts a slot where the key was not found, if there is room: see [`Batch::has_room`].
    pub fn insert(&mut self, signature: u64, slot: &Slot) {
        let buckets = self.buckets(signature);
        let filled = |at: &u64| self.images[at].image.meta().filled();
        let Some(at) = buckets.into_iter().filter(|at| filled(at) < FILLED_MAX).min_by_key(filled) else {
            self.full.insert(self.table.segment(signature).offset().0, signature);
            return;
        };
        let changed = self.images.get_mut(&at).expect("it was copied");
        let i = changed.image.meta().free_slot().expect("it has room");
        changed.image.set(i, slot);
        changed.is_changed = true;
    }

    /// Whether everything found room. Otherwise the batch is to be dropped, and begun anew after [`BlockHash::split_for_batch`].
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn has_room(&self) -> Result<(), NoRoom> {
        if self.full.is_empty() {
            return Ok(());
        }
        Err(NoRoom(
            self.full.iter().map(|(&segment, &signature)| (signature, Full { segment: Offset(segment) })).collect(),
        ))
    }

    /// Puts a slot in the place of another of the key, or nothing.
    pub fn replace(&mut self, old: &Found, slot: Option<&Slot>) {
        self.replaced.push(old.slot);
        let changed = self.images.get_mut(&old.at).expect("it was copied");
        match slot {
            Some(slot) => changed.image.set(old.i, slot),
            None => changed.image.clear(old.i),
        }
        changed.is_changed = true;
    }

    /// True if every bucket stays as it is.
    pub fn changes_nothing(&self) -> bool {
        self.images.values().all(|changed| !changed.is_changed)
    }

    /// Room for the record.
    ///
    /// # Errors
    /// The allocator's, and nothing has changed.
    pub fn reserve_record(&self) -> Result<Reservation<'a, D>, HeapError> {
        let count = self.images.values().filter(|changed| changed.is_changed).count();
        self.cx.heap.reserve(self.cx.medium, (HEADER_BYTES + count * ENTRY_BYTES) as u64, epoch::thread_index())
    }

    /// Steps 3 to 8; what is to be waited for. The caller waits without locks.
    pub fn commit(mut self, record: Reservation<'a, D>) -> Ticket {
        self.images.retain(|_, changed| changed.is_changed);
        let (cx, record) = (self.cx, record.publish());
        let images = self.images.iter().map(|(at, changed)| (*at, changed.image)).collect();
        let overlay = Box::into_raw(Box::new(Overlay { images, is_decided: AtomicBool::new(false) }));
        // SAFETY: it came from a box, and is freed no earlier than it is retired below.
        let images = unsafe { &(*overlay).images };
        write_record(cx.medium, record.offset, images);
        if !cx.medium.breaks(canary::BLOCK_BATCH_BEFORE_RECORD) {
            cx.medium.order();
        }
        if cx.medium.breaks(canary::CARRIED_OUT_BEFORE_WORD) {
            self.carry_out(images, true);
        }
        self.table.overlay.store(overlay, Ordering::Release);
        // Now: who has counted this has seen the overlay, or that it has gone.
        self.images.values().for_each(|changed| _ = changed.segment.raise(changed.number));
        let ticket = publish_word(cx.medium, record.offset);
        // SAFETY: as above.
        unsafe { &*overlay }.is_decided.store(true, Ordering::Release);
        self.count_items();
        self.replaced.iter().for_each(|slot| mark_unlinked(cx, slot));
        self.carry_out(images, ticket.is_done());
        if !cx.medium.breaks(canary::BLOCK_BATCH_FORGOTTEN_EARLY) {
            cx.medium.order();
        }
        BatchWord::clear(cx.medium, WORD);
        cx.medium.order();
        self.table.overlay.store(ptr::null_mut(), Ordering::Release);
        // SAFETY: it came from a box, and only who has the turn takes it away.
        cx.retire(Garbage::Table(Table::new(unsafe { Retired::new(overlay) })));
        cx.heap.free(cx.medium, record);
        ticket
    }

    /// Step 7, but for its order.
    fn carry_out(&self, images: &BTreeMap<u64, Image>, is_durable: bool) {
        let medium = self.cx.medium;
        for (&at, image) in images {
            if is_durable {
                image.store(medium, Offset(at));
            } else {
                let locked = image.with_meta(image.meta().locked());
                locked.store(medium, Offset(at));
                medium.publish(&[(Offset(at), locked.meta().0)], at);
            }
        }
    }

    /// The buckets are as they were.
    fn count_items(&self) {
        for (&at, changed) in &self.images {
            let before = Image::of(self.cx.medium, Offset(at)).meta().filled();
            changed.segment.count(i64::from(changed.image.meta().filled()) - i64::from(before));
        }
    }
}

/// Step 5.
fn publish_word<M: Medium>(medium: &M, record: Offset) -> Ticket {
    let (at, word) = (batch_word(WORD), BatchWord { record, state: BatchState::Committed });
    medium.publish(&[(at, word.word())], at.0);
    medium.commit(Level::Strongest)
}

fn write_record<M: Medium>(medium: &M, at: Offset, images: &BTreeMap<u64, Image>) {
    let mut bytes = vec![0; HEADER_BYTES + images.len() * ENTRY_BYTES];
    let (header, entries) = bytes.split_at_mut(HEADER_BYTES);
    for (entry, (at, image)) in entries.chunks_exact_mut(ENTRY_BYTES).zip(images) {
        entry[..8].copy_from_slice(&at.to_le_bytes());
        entry[16..].copy_from_slice(&image.to_bytes());
    }
    header[..4].copy_from_slice(&(images.len() as u32).to_le_bytes());
    let checksum = crc32c(crc32c(0, &header[..4]), entries);
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
    // SAFETY: the place was reserved for it, and nothing names it yet.
    unsafe { medium.stream(at, &[&bytes]) };
}

fn read_record<M: Medium>(medium: &M, at: Offset) -> Result<BTreeMap<u64, Image>, HeapError> {
    let damaged = HeapError::Damaged { offset: at.0, what: "a batch's record is damaged" };
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    // SAFETY: nobody stores to a record that a batch word names.
    let header = unsafe { medium.bytes(at.span(HEADER_BYTES as u64)) }.map_err(HeapError::from)?;
    let entries_bytes = u64::from(number(header)) * ENTRY_BYTES as u64;
    // SAFETY: as above.
    let entries = unsafe { medium.bytes(at.plus(HEADER_BYTES as u64).span(entries_bytes)) }.map_err(HeapError::from)?;
    if number(&header[4..]) != crc32c(crc32c(0, &header[..4]), entries) {
        return Err(damaged);
    }
    let entry = |entry: &[u8; ENTRY_BYTES]| {
        let at = u64::from_le_bytes(*entry.first_chunk().expect("an entry is longer"));
        (at, Image::from_bytes(entry.last_chunk().expect("an entry ends with a bucket")))
    };
    Ok(entries.as_chunks::<ENTRY_BYTES>().0.iter().map(entry).collect())
}

/// Carries a committed batch out again; of a region that is only read, what readers read in its place. Nobody uses the table yet.
pub(super) fn recover<M: Medium, D: Dram>(cx: Context<'_, M, D>) -> Result<*mut Overlay, HeapError> {
    let Some(word) = BatchWord::load(cx.medium, WORD)? else { return Ok(ptr::null_mut()) };
    let images = read_record(cx.medium, word.record)?;
    if !cx.medium.is_writable() {
        return Ok(Box::into_raw(Box::new(Overlay { images, is_decided: AtomicBool::new(true) })));
    }
    images.iter().for_each(|(&at, image)| image.store(cx.medium, Offset(at)));
    cx.medium.order();
    BatchWord::clear(cx.medium, WORD);
    cx.medium.order();
    Ok(ptr::null_mut())
}
