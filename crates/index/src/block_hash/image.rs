//! Buckets: as they are stored, and as copies in volatile memory.

use std::sync::atomic::Ordering;

use heap::layout::SEGMENT_BYTES;
use pmem::{Medium, Offset, seal};

use super::layout::{BUCKET_BYTES, BUCKET_WORDS, Meta, SLOT_BYTES, bucket, slot_start};
use super::slot::Slot;
use crate::segmented::layout::{NEXT_BYTES, PREFIX_BYTES, SegmentHeader};

/// Something that has a bucket's words.
pub(super) trait Words {
    /// Word `i`.
    fn word(&self, i: usize) -> u64;

    /// The meta word.
    #[inline(always)]
    fn meta(&self) -> Meta {
        Meta(self.word(0))
    }

    /// The first eight bytes of slot `i`.
    #[inline(always)]
    fn head(&self, i: usize) -> u64 {
        let (word, shift) = (slot_start(i) / 8, slot_start(i) % 8 * 8);
        self.word(word) >> shift | self.word(word + 1) << 1 << (63 - shift)
    }

    /// Slot `i`, of the shape that `meta` says.
    #[inline(always)]
    fn slot(&self, meta: Meta, i: usize) -> Slot {
        let (start, mut bytes) = (slot_start(i), [0; 40]);
        let (first, last) = (start / 8, (start + SLOT_BYTES - 1) / 8);
        for (word, at) in (first..=last).zip((0..).step_by(8)) {
            bytes[at..at + 8].copy_from_slice(&self.word(word).to_le_bytes());
        }
        Slot::from_parts(meta.shape(i), *bytes[start % 8..].first_chunk().expect("a slot lies in five words"))
    }

    /// Whether a slot that holds an item is damaged.
    fn has_damaged_slot(&self) -> bool {
        let meta = self.meta();
        meta.slots().any(|i| !self.slot(meta, i).is_whole())
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
}

impl<M: Medium> Stored<'_, M> {
    /// Stores a slot's bytes, and flushes them. The caller holds the bucket's lock, and the slot is free: of the words at its ends
    /// the neighbours' bytes stay as they are.
    pub(super) fn write_slot(&self, i: usize, slot: &Slot, is_flushed: bool) {
        let start = slot_start(i);
        let (first, last) = (start / 8, (start + SLOT_BYTES - 1) / 8);
        let mut bytes = [0; 40];
        for word in [first, last] {
            bytes[(word - first) * 8..][..8].copy_from_slice(&self.word(word).to_le_bytes());
        }
        bytes[start % 8..][..SLOT_BYTES].copy_from_slice(slot.bytes());
        for (word, bytes) in (first..=last).zip(bytes.as_chunks::<8>().0) {
            self.medium.store(self.at.plus(8 * word as u64), u64::from_le_bytes(*bytes), Ordering::Release);
        }
        if is_flushed {
            self.medium.flush(self.at.plus(start as u64).span(SLOT_BYTES as u64));
        }
    }
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

    /// The slots that hold an item.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, Slot)> + '_ {
        self.meta().slots().map(|i| (i, self.slot(self.meta(), i)))
    }

    /// Puts a slot at `i`, whatever is there. Nobody reads the copy as what is stored, so no lock bit says more.
    pub(super) fn set(&mut self, i: usize, slot: &Slot) {
        let mut bytes = self.to_bytes();
        bytes[slot_start(i)..][..SLOT_BYTES].copy_from_slice(slot.bytes());
        let meta = self.meta().with(i, slot.shape()).unlocked();
        *self = Image::from_bytes(&bytes);
        self.0[0] = meta.0;
    }

    /// Empties slot `i`.
    pub(super) fn clear(&mut self, i: usize) {
        self.0[0] = self.meta().without(i).unlocked().0;
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

/// The bytes of a segment that is to be.
pub(super) struct SegmentImage(Box<[u8; SEGMENT_BYTES as usize]>);

impl SegmentImage {
    /// An empty one.
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

    /// Writes and flushes it. The caller reserved the place.
    pub(super) fn stream<M: Medium>(&self, medium: &M, at: Offset) {
        // SAFETY: the place was just reserved, and nobody else knows it.
        unsafe { medium.stream(at, &[&self.0[..]]) };
    }

    fn set_word(&mut self, at: u64, word: u64) {
        self.0[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
    }
}
