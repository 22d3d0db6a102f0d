//! Rewo-Hash as its paper describes it (Huang, Yan, Huang, DATE 2020), to check the paper's figures on the paper's own
//! table. Where the text leaves a choice, this takes the one that the figures agree with.
//!
//! - A key has two of all buckets. An insert fills the first of them before the second (first-fit), all eight slots. If
//!   both are full, an item of theirs moves to its other bucket. Figure 10b needs full buckets at a load of 0.4, which
//!   filling the emptier bucket would not leave.
//! - An update writes a free slot of the item's bucket. If there is none, it writes one of the key's other bucket and
//!   then empties the old slot; if that bucket is full as well, another item of the two moves out first.
//! - The cached table is a copy of each bucket at the same place in volatile memory, as large as the table. (The
//!   paper's cached buckets of 64 bytes have space for one item each, so a copy of the table's size could not hold a
//!   load of 0.8.)
//! - Pre-eviction moves an item out of each full bucket whose other bucket is light.
//!
//! ```text
//! bucket, 256 bytes   +0 bmeta   +8+31i slot i: key 16, value 15
//! bmeta               bits 0-7 bitmap, 16+4i length of the value in slot i
//! ```
//!
//! # A write
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 a move, if both buckets are full: an item is written into a free slot of its other bucket; durable | the same |
//! | 2 its bit on there; durable | two equal items |
//! | 3 its bit off here; durable | the same items |
//! | 4 a free slot is written; durable | the same |
//! | 5 the bmeta word: bit on, the old item's bit off if it is in this bucket; durable | the new item; else both |
//! | 6 the old item's bit off in its bucket, if it is in another; durable | the new item |
//!
//! A delete is one bit off. Opening removes one of two items of a key, the second in the order of its buckets: one is
//! as right as the other, because the operation had not returned. The lock bits of the paper's bmeta are left out:
//! there is one caller at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use pmem::{LINE_BYTES, Medium, Offset};

use crate::item::{ITEM_BYTES, Item, places};
use crate::region::{Region, TABLE, Words};
use crate::{Error, Result, Table, canary};

const KIND: u64 = u64::from_le_bytes(*b"Rewo\0\0\0\x01");
const BUCKET_BYTES: u64 = 256;
const BUCKET_WORDS: usize = BUCKET_BYTES as usize / 8;
const SLOT_COUNT: usize = 8;
const LENGTHS_SHIFT: usize = 16;
/// The number of items up to which pre-eviction moves an item into a bucket.
const LIGHT_FILLED_MAX: u32 = SLOT_COUNT as u32 - 2;

/// A Rewo-Hash table as printed, with a copy in volatile memory or without.
pub struct RewoPrinted<M, const HAS_COPY: bool = true> {
    region: Region<M>,
    bucket_count: u64,
    copy: Box<[AtomicU64]>,
}

/// A slot of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    bucket: u64,
    i: usize,
}

/// The meta word of a bucket.
#[derive(Clone, Copy)]
struct Meta(u64);

impl Meta {
    fn filled(self) -> u32 {
        (self.0 as u8).count_ones()
    }

    fn free_slot(self) -> Option<usize> {
        Some((self.0 as u8).trailing_ones() as usize).filter(|&i| i < SLOT_COUNT)
    }

    fn slots(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..SLOT_COUNT).filter(move |i| self.0 >> i & 1 == 1)
    }

    fn with(self, i: usize, item: &Item) -> Meta {
        let shift = LENGTHS_SHIFT + 4 * i;
        Meta(self.0 & !(15 << shift) | (item.value().len() as u64) << shift | 1 << i)
    }

    fn without(self, i: usize) -> Meta {
        Meta(self.0 & !(1 << i))
    }
}

/// A source of a bucket's words.
trait Source {
    fn word(&self, bucket: u64, i: usize) -> u64;

    fn meta(&self, bucket: u64) -> Meta {
        Meta(self.word(bucket, 0))
    }

    /// Returns the item in slot `i`.
    #[inline(always)]
    fn item(&self, bucket: u64, meta: Meta, i: usize) -> Item {
        let (start, mut bytes) = (8 + i * ITEM_BYTES, [0; 40]);
        for (word, at) in (start / 8..=(start + ITEM_BYTES - 1) / 8).zip((0..).step_by(8)) {
            bytes[at..at + 8].copy_from_slice(&self.word(bucket, word).to_le_bytes());
        }
        let len_bytes = meta.0 >> (LENGTHS_SHIFT + 4 * i) & 15;
        Item::of(*bytes[start % 8..].first_chunk().expect("an item fits in five words"), len_bytes as usize)
    }

    #[inline(always)]
    fn find(&self, key: &[u8], buckets: [u64; 2]) -> Option<(Slot, Item)> {
        buckets.into_iter().find_map(|bucket| {
            let meta = self.meta(bucket);
            let items = meta.slots().map(|i| (Slot { bucket, i }, self.item(bucket, meta, i)));
            items.into_iter().find(|(_, item)| item.key() == key)
        })
    }
}

impl<M: Medium> Source for Region<M> {
    #[inline(always)]
    fn word(&self, bucket: u64, i: usize) -> u64 {
        Region::word(self, at(bucket).plus(8 * i as u64))
    }
}

impl Source for [AtomicU64] {
    #[inline(always)]
    fn word(&self, bucket: u64, i: usize) -> u64 {
        self[bucket as usize * BUCKET_WORDS + i].load(Ordering::Relaxed)
    }
}

fn at(bucket: u64) -> Offset {
    TABLE.plus(bucket * BUCKET_BYTES)
}

impl<M: Medium, const HAS_COPY: bool> RewoPrinted<M, HAS_COPY> {
    fn of(region: Region<M>) -> RewoPrinted<M, HAS_COPY> {
        let bucket_count = region.slot_count / SLOT_COUNT as u64;
        let word_count = if HAS_COPY { bucket_count as usize * BUCKET_WORDS } else { 0 };
        let copy = (0..word_count).map(|_| AtomicU64::new(0)).collect();
        RewoPrinted { region, bucket_count, copy }
    }

    /// Returns the two different buckets of a key.
    #[inline(always)]
    fn choices(&self, key: &[u8]) -> [u64; 2] {
        let [first, distance] = places(&self.region.hasher, key, [self.bucket_count, self.bucket_count - 1]);
        let second = first + 1 + distance;
        [first, if second < self.bucket_count { second } else { second - self.bucket_count }]
    }

    /// Returns the buckets of a key, whose lines are prefetched together.
    #[inline(always)]
    fn asked(&self, key: &[u8]) -> [u64; 2] {
        let choices = self.choices(key);
        for bucket in choices {
            self.region.ask_for(at(bucket).span(BUCKET_BYTES));
            if HAS_COPY {
                let words = self.copy[bucket as usize * BUCKET_WORDS..].iter().step_by(LINE_BYTES as usize / 8);
                words.take(BUCKET_WORDS / 8).for_each(|word| pmem::arch::prefetch(std::ptr::from_ref(word).cast()));
            }
        }
        choices
    }

    /// Writes the bucket's meta word, which ends a step, and brings the copy up to date with it.
    fn put_meta(&self, bucket: u64, meta: Meta) -> Result<()> {
        self.region.put(at(bucket), meta.0)?;
        self.copy_words(bucket, &[(at(bucket), meta.0)]);
        Ok(())
    }

    #[inline(always)]
    fn copy_words(&self, bucket: u64, words: &[(Offset, u64)]) {
        if HAS_COPY {
            let start = bucket as usize * BUCKET_WORDS;
            let place = |place: &Offset| start + (place.0 - at(bucket).0) as usize / 8;
            words.iter().for_each(|(at, word)| self.copy[place(at)].store(*word, Ordering::Relaxed));
        }
    }

    /// Carries out steps 4 and 5: writes an item into a free slot; the same word empties slot `old`. Two fences.
    fn fill(&self, Slot { bucket, i }: Slot, item: &Item, old: Option<usize>) -> Result<()> {
        let start = 8 + i * ITEM_BYTES;
        let word = |word: usize| {
            let mut now = Source::word(&self.region, bucket, word).to_le_bytes();
            for (at, byte) in (word * 8..).zip(&mut now) {
                *byte = at.checked_sub(start).and_then(|i| item.bytes.get(i)).copied().unwrap_or(*byte);
            }
            (at(bucket).plus(8 * word as u64), u64::from_le_bytes(now))
        };
        let words: Words = (start / 8..=(start + ITEM_BYTES - 1) / 8).map(word).collect();
        let meta = self.region.meta(bucket).with(i, item);
        let meta = old.map_or(meta, |old| meta.without(old));
        self.region.write(&words, (at(bucket), meta.0))?;
        self.copy_words(bucket, &words);
        self.copy_words(bucket, &[(at(bucket), meta.0)]);
        Ok(())
    }

    fn free(&self, bucket: u64) -> Option<Slot> {
        self.region.meta(bucket).free_slot().map(|i| Slot { bucket, i })
    }

    /// Empties a slot.
    fn empty(&self, Slot { bucket, i }: Slot) -> Result<()> {
        self.put_meta(bucket, self.region.meta(bucket).without(i))
    }

    /// Writes an item into a free slot of another bucket, then empties the old slot. Three fences.
    fn replace(&self, old: Slot, free: Slot, item: &Item) -> Result<()> {
        let is_early = self.region.medium.breaks(canary::EMPTIED_BEFORE_MOVED);
        if is_early {
            self.empty(old)?;
        }
        self.fill(free, item, None)?;
        if is_early { Ok(()) } else { self.empty(old) }
    }

    /// Carries out steps 1 to 3: moves one of these items of a bucket to its other bucket, if that has a free slot and
    /// is no fuller than `filled_max`. Returns the slot that is free then.
    fn move_one(&self, bucket: u64, slots: impl Iterator<Item = usize>, filled_max: u32) -> Result<Option<Slot>> {
        let meta = self.region.meta(bucket);
        let all: ArrayVec<_, SLOT_COUNT> = slots
            .map(|i| {
                let item = self.region.item(bucket, meta, i);
                let other = self.choices(item.key()).into_iter().find(|other| *other != bucket).unwrap_or(bucket);
                self.region.ask_for(at(other).span(8));
                (i, item, other)
            })
            .collect();
        let has_space = |to: u64| to != bucket && self.region.meta(to).filled() <= filled_max;
        let Some((i, item, to)) = all.into_iter().find(|(_, _, to)| has_space(*to)) else { return Ok(None) };
        let from = Slot { bucket, i };
        self.replace(from, self.free(to).expect("it has space"), &item)?;
        Ok(Some(from))
    }

    /// Moves one item out of each full bucket, the last whose other bucket is light (the paper's pre-eviction).
    ///
    /// # Errors
    /// An error of the medium.
    pub fn pre_evict(&self) -> Result<u64> {
        let mut count = 0;
        for bucket in 0..self.bucket_count {
            if self.region.meta(bucket).filled() == SLOT_COUNT as u32 {
                let moved = self.move_one(bucket, (0..SLOT_COUNT).rev(), LIGHT_FILLED_MAX)?;
                count += u64::from(moved.is_some());
            }
        }
        Ok(count)
    }

    /// Returns the share of the items that are in full buckets.
    pub fn crowded_share(&self) -> f64 {
        let full = (0..self.bucket_count).filter(|bucket| self.region.meta(*bucket).filled() == SLOT_COUNT as u32);
        (full.count() * SLOT_COUNT) as f64 / self.region.item_count().max(1) as f64
    }

    fn recover(&self) -> Result<()> {
        let buckets = 0..self.bucket_count;
        buckets.clone().for_each(|bucket| self.region.count(self.region.meta(bucket).filled().into()));
        for bucket in buckets {
            let meta = self.region.meta(bucket);
            for i in meta.slots() {
                let item = self.region.item(bucket, meta, i);
                let first = self.region.find(item.key(), self.choices(item.key()));
                let is_second = first.is_some_and(|(first, _)| first != Slot { bucket, i });
                if is_second && !self.region.medium.breaks(canary::DUPLICATE_LEFT) {
                    self.region.count(-1);
                    self.empty(Slot { bucket, i })?;
                }
            }
            let words: ArrayVec<_, BUCKET_WORDS> = (0..BUCKET_WORDS)
                .map(|i| (at(bucket).plus(8 * i as u64), Source::word(&self.region, bucket, i)))
                .collect();
            self.copy_words(bucket, &words);
        }
        Ok(())
    }
}

impl<M: Medium, const HAS_COPY: bool> Table<M> for RewoPrinted<M, HAS_COPY> {
    const NAME: &'static str = if HAS_COPY { "rewo-printed" } else { "rewo-printed-no-copy" };
    const SLOT_COUNT_MIN: u64 = 2 * SLOT_COUNT as u64;

    fn format(medium: M, slot_count: u64) -> Result<Self> {
        let bucket_count = if slot_count < Self::SLOT_COUNT_MIN { 0 } else { slot_count / SLOT_COUNT as u64 };
        let slot_count = bucket_count * SLOT_COUNT as u64;
        Ok(RewoPrinted::of(Region::format(medium, KIND, slot_count, bucket_count * BUCKET_BYTES)?))
    }

    fn open(medium: M) -> Result<Self> {
        let table = RewoPrinted::of(Region::open(medium, KIND)?);
        table.recover()?;
        Ok(table)
    }

    fn region(&self) -> &Region<M> {
        &self.region
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (item, choices) = (Item::new(key, value)?, self.asked(key));
        let mut free = choices.into_iter().find_map(|bucket| self.free(bucket));
        for bucket in choices {
            if free.is_none() {
                free = self.move_one(bucket, 0..SLOT_COUNT, SLOT_COUNT as u32 - 1)?;
            }
        }
        self.fill(free.ok_or(Error::Full)?, &item, None)?;
        self.region.count(1);
        Ok(())
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let (item, choices) = (Item::new(key, value)?, self.asked(key));
        let Some((old, _)) = self.region.find(key, choices) else { return Ok(false) };
        if let Some(free) = self.free(old.bucket) {
            return self.fill(free, &item, Some(old.i)).map(|()| true);
        }
        if let Some(free) = choices.into_iter().find_map(|bucket| self.free(bucket)) {
            return self.replace(old, free, &item).map(|()| true);
        }
        let others = (0..SLOT_COUNT).filter(|i| *i != old.i);
        if let Some(free) = self.move_one(old.bucket, others, SLOT_COUNT as u32 - 1)? {
            return self.fill(free, &item, Some(old.i)).map(|()| true);
        }
        let other = choices.into_iter().find(|bucket| *bucket != old.bucket).unwrap_or(old.bucket);
        let free = self.move_one(other, 0..SLOT_COUNT, SLOT_COUNT as u32 - 1)?;
        self.replace(old, free.ok_or(Error::Full)?, &item).map(|()| true)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        let Some((slot, _)) = self.region.find(key, self.asked(key)) else { return Ok(false) };
        self.region.count(-1);
        self.empty(slot).map(|()| true)
    }

    #[inline(always)]
    fn get(&self, key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        let at = if HAS_COPY { self.copy.find(key, self.choices(key)) } else { self.region.find(key, self.asked(key)) };
        at.map(|(_, item)| found(item.value())).is_some()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        for bucket in 0..self.bucket_count {
            let meta = self.region.meta(bucket);
            meta.slots().map(|i| self.region.item(bucket, meta, i)).for_each(|item| each(item.key(), item.value()));
        }
    }
}
