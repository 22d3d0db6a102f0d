//! Buckets: as they are stored, and as copies in DRAM.

use std::sync::atomic::Ordering;

use heap::layout::SEGMENT_BYTES;
use pmem::{Medium, Offset, seal};

use super::layout::{BUCKET_BYTES, BUCKET_WORDS, Meta, SLOT_BYTES, bucket, slot_start};
use super::slot::{SLOT_WORDS, Slot};
use crate::segmented::layout::{NEXT_BYTES, PREFIX_BYTES, SegmentHeader};

/// A source of a bucket's words.
pub(super) trait Words {
    /// Returns word `i`.
    fn word(&self, i: usize) -> u64;

    /// Returns the words with these numbers.
    #[inline(always)]
    fn some<const COUNT: usize>(&self, numbers: [u8; COUNT]) -> [u64; COUNT] {
        numbers.map(|i| self.word(i.into()))
    }

    /// Returns the meta word.
    #[inline(always)]
    fn meta(&self) -> Meta {
        Meta(self.word(0))
    }

    /// Returns the first eight bytes of slot `i`.
    #[inline(always)]
    fn head(&self, i: usize) -> u64 {
        let (word, shift) = (slot_start(i) / 8, slot_start(i) % 8 * 8);
        self.word(word) >> shift | self.word(word + 1) << 1 << (63 - shift)
    }

    /// Returns slot `i`, with its shape from `meta`.
    #[inline(always)]
    fn slot(&self, meta: Meta, i: usize) -> Slot {
        let (first, shift) = (slot_start(i) / 8, slot_start(i) % 8 * 8);
        // The last slot has no word behind it, and needs none.
        let fifth = (first + SLOT_WORDS).min(BUCKET_WORDS - 1);
        let words = self.some([first as u8, first as u8 + 1, first as u8 + 2, first as u8 + 3, fifth as u8]);
        let word = |k: usize| words[k] >> shift | words[k + 1] << 1 << (63 - shift);
        Slot::from_words(meta.shape(i), std::array::from_fn(word))
    }

    /// Returns true if a slot that holds an item is damaged.
    fn has_damaged_slot(&self) -> bool {
        let meta = self.meta();
        meta.slots().any(|i| !self.slot(meta, i).is_intact())
    }
}

/// A bucket in the region.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a, M> {
    pub(super) medium: &'a M,
    pub(super) at: Offset,
}

impl<M: Medium> Words for Stored<'_, M> {
    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        self.medium.load(self.at.plus(8 * i as u64), Ordering::Acquire)
    }

    #[inline(always)]
    fn some<const COUNT: usize>(&self, numbers: [u8; COUNT]) -> [u64; COUNT] {
        self.medium.load_some(self.at, numbers)
    }
}

impl<M: Medium> Stored<'_, M> {
    /// Stores a slot's bytes, and flushes them. The caller holds the bucket's lock, and the slot is free. The bytes
    /// of neighbours in the slot's first and last word stay unchanged.
    #[inline(always)]
    pub(super) fn write_slot(&self, i: usize, slot: &Slot, is_flushed: bool) {
        let store = |word: usize, bits| self.medium.store(self.at.plus(8 * word as u64), bits, Ordering::Release);
        place(i, slot, |word| self.word(word), store);
        if is_flushed {
            self.medium.flush(self.at.plus(slot_start(i) as u64).span(SLOT_BYTES as u64));
        }
    }
}

/// Puts slot `i` into its words. `now` reads the first and the last of them, which contain bytes of neighbours.
#[inline(always)]
fn place(i: usize, slot: &Slot, now: impl Fn(usize) -> u64, mut store: impl FnMut(usize, u64)) {
    let (first, shift) = (slot_start(i) / 8, slot_start(i) % 8 * 8);
    let bits = shifted(slot.words(), shift);
    // A slot that begins at most one byte after the start of a word ends in the fourth word.
    let is_in_five = shift > 8;
    let last = first + SLOT_WORDS - usize::from(!is_in_five);
    // The bits behind the end of the slot. Within its word, the slot ends one byte before the place at which it
    // begins.
    let before = now(first) & !(!0 << shift);
    let behind = now(last) & (!0u64 << 1 << ((shift + 55) % 64));
    store(first, bits[0] | before);
    store(first + 1, bits[1]);
    store(first + 2, bits[2]);
    if is_in_five {
        store(first + 3, bits[3]);
        store(first + 4, bits[4] | behind);
    } else {
        store(first + 3, bits[3] | behind);
    }
}

/// Shifts words up by `shift` bits, fewer than 64.
#[inline(always)]
fn shifted([low, middle, high, last]: [u64; SLOT_WORDS], shift: usize) -> [u64; SLOT_WORDS + 1] {
    let from = |word: u64| word >> 1 >> (63 - shift);
    [low << shift, middle << shift | from(low), high << shift | from(middle), last << shift | from(high), from(last)]
}

/// A copy of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Image([u64; BUCKET_WORDS]);

impl Words for Image {
    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        self.0[i]
    }
}

impl Image {
    pub(super) const EMPTY: Image = Image([0; BUCKET_WORDS]);

    pub(super) fn of<M: Medium>(medium: &M, at: Offset) -> Image {
        let stored = Stored { medium, at };
        Image(std::array::from_fn(|i| stored.word(i)))
    }

    pub(super) fn from_bytes(bytes: &[u8; BUCKET_BYTES as usize]) -> Image {
        let words = bytes.as_chunks::<8>().0;
        Image(std::array::from_fn(|i| u64::from_le_bytes(words[i])))
    }

    pub(super) fn to_bytes(self) -> [u8; BUCKET_BYTES as usize] {
        let mut bytes = [0; BUCKET_BYTES as usize];
        bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        bytes
    }

    /// Returns the slots that hold an item.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, Slot)> + '_ {
        self.meta().slots().map(|i| (i, self.slot(self.meta(), i)))
    }

    /// Puts a slot at `i`, whatever is there, and sets its lock bit.
    pub(super) fn set(&mut self, i: usize, slot: &Slot) {
        let meta = self.meta().with(i, slot.shape());
        let words = self.0;
        place(i, slot, |word| words[word], |word, bits| self.0[word] = bits);
        self.0[0] = meta.0;
    }

    /// Empties slot `i`, and sets its lock bit.
    pub(super) fn clear(&mut self, i: usize) {
        self.0[0] = self.meta().without(i).0;
    }

    /// Returns the bucket without lock bits, for one in which everything is durable.
    pub(super) fn unlocked(self) -> Image {
        self.with_meta(self.meta().unlocked())
    }

    pub(super) fn with_meta(mut self, meta: Meta) -> Image {
        self.0[0] = meta.0;
        self
    }

    /// Stores the copy, and flushes it. The caller holds the bucket's lock.
    pub(super) fn store<M: Medium>(&self, medium: &M, at: Offset) {
        for (i, word) in self.0.iter().enumerate().rev() {
            medium.store(at.plus(8 * i as u64), *word, Ordering::Release);
        }
        medium.flush(at.span(BUCKET_BYTES));
    }
}

/// The bytes of a segment under construction.
pub(super) struct SegmentImage(Box<[u8; SEGMENT_BYTES as usize]>);

impl SegmentImage {
    /// Creates an empty segment.
    pub(super) fn new(header: SegmentHeader) -> SegmentImage {
        let bytes = vec![0; SEGMENT_BYTES as usize].into_boxed_slice().try_into().expect("it has that length");
        let mut image = SegmentImage(bytes);
        image.set_word(0, header.state_word());
        image.set_word(PREFIX_BYTES, seal(header.prefix));
        image
    }

    pub(super) fn set_next(&mut self, next: Offset) {
        self.set_word(NEXT_BYTES, seal(next.0));
    }

    pub(super) fn set_bucket(&mut self, number: usize, image: &Image) {
        let at = bucket(Offset(0), number).0 as usize;
        self.0[at..at + BUCKET_BYTES as usize].copy_from_slice(&image.to_bytes());
    }

    /// Writes and flushes the segment. The caller has reserved the place.
    pub(super) fn stream<M: Medium>(&self, medium: &M, at: Offset) {
        // SAFETY: the place was just reserved, and no other thread has it.
        unsafe { medium.stream(at, &[&self.0[..]]) };
    }

    fn set_word(&mut self, at: u64, word: u64) {
        self.0[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;

    /// Each slot is at the documented place and leaves its neighbours unchanged, whatever their bytes.
    #[test]
    fn slot_stays_in_its_bytes() {
        let slot = Slot::of_item(0x1122_3344_5566_7788, Position::from_word(0x99AA_BBCC_DDEE_FF00));
        let bytes: Vec<u8> = slot.words().iter().flat_map(|word| word.to_le_bytes()).take(SLOT_BYTES).collect();
        for (i, around) in (0..8).flat_map(|i| [(i, 0), (i, 0xFF), (i, 0x5A)]) {
            let mut image = Image::from_bytes(&[around; BUCKET_BYTES as usize]);
            image.set(i, &slot);
            let (start, all) = (slot_start(i), image.to_bytes());
            assert_eq!(all[start..start + SLOT_BYTES], bytes, "slot {i}");
            assert!(all[8..start].iter().chain(&all[start + SLOT_BYTES..]).all(|byte| *byte == around), "slot {i}");
            assert_eq!(image.slot(image.meta(), i), slot);
            assert_eq!(image.head(i), 0x1122_3344_5566_7788);
        }
    }
}
