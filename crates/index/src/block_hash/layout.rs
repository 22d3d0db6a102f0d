//! The bytes of a bucket, and the buckets of a signature.
//!
//! ```text
//! segment, 16 KiB                       bucket, 256 bytes: eight slots
//! +0      header line, then zero        +0       meta word
//! +256    bucket 0                      +8+31·i  slot i
//! +512    bucket 1
//! ...     bucket 62                     meta word
//!                                       bits 0-7   bitmap: the slots that hold an item
//! signature, from the bottom            bits 8-15  lock bits: hints, 'perhaps not durable yet'
//! bits 0-15   distance of the buckets   bits 16+6i shape of slot i: length of its value 4, kind 2
//! bits 16-31  first bucket
//! ```

use heap::layout::SEGMENT_BYTES;
use pmem::Offset;

/// The number of bytes in a bucket, a block of persistent memory.
pub const BUCKET_BYTES: u64 = 256;
/// The number of words in a bucket.
pub const BUCKET_WORDS: usize = BUCKET_BYTES as usize / 8;
/// The number of buckets in a segment. The first block of a segment is the header.
pub const BUCKET_COUNT: usize = (SEGMENT_BYTES / BUCKET_BYTES) as usize - 1;
/// The number of slots in a bucket.
pub const SLOT_COUNT: usize = 8;
/// The number of bytes in a slot.
pub const SLOT_BYTES: usize = 31;
/// The number of items to which inserts fill a bucket. The last slot is kept free for updates, so that they never
/// leave their bucket.
pub const FILLED_MAX: u32 = SLOT_COUNT as u32 - 1;

const _: () = assert!(8 + SLOT_COUNT * SLOT_BYTES == BUCKET_BYTES as usize && BUCKET_COUNT == 63);

/// Returns the place of bucket `number` of the segment: its meta word.
#[inline(always)]
#[must_use]
pub const fn bucket(segment: Offset, number: usize) -> Offset {
    segment.plus((number as u64 + 1) * BUCKET_BYTES)
}

/// Returns the offset of slot `i` from the start of its bucket.
#[inline(always)]
#[must_use]
pub const fn slot_start(i: usize) -> usize {
    8 + i * SLOT_BYTES
}

/// Returns the two buckets of a signature, in any segment. They differ.
#[inline(always)]
#[must_use]
pub const fn choices(signature: u64) -> [usize; 2] {
    let first = (((signature >> 16 & 0xFFFF) * BUCKET_COUNT as u64) >> 16) as usize;
    let distance = 1 + (((signature & 0xFFFF) * (BUCKET_COUNT as u64 - 1)) >> 16) as usize;
    let second = first + distance;
    [first, if second < BUCKET_COUNT { second } else { second - BUCKET_COUNT }]
}

/// The meta word of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meta(pub u64);

const LOCKS: u64 = 0xFF << 8;
const SHAPE_BITS: u32 = 6;
/// A shape is a length, and above it two bits for the kind.
pub(super) const KIND_SHIFT: u32 = 4;
const SHAPES_SHIFT: u32 = 16;
const SHAPE: u64 = (1 << SHAPE_BITS) - 1;

/// For each bitmap, bit i at bit 6i, the place of the shape of slot i.
static SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut i = 0;
    while i < 256 * SLOT_COUNT {
        let (bitmap, slot) = (i / SLOT_COUNT, i % SLOT_COUNT);
        spread[bitmap] |= (bitmap as u64 >> slot & 1) << (SHAPE_BITS as usize * slot);
        i += 1;
    }
    spread
};

impl Meta {
    /// Returns the word as it is stored.
    #[inline(always)]
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Returns the bitmap of the slots that hold an item.
    #[inline(always)]
    #[must_use]
    pub const fn bitmap(self) -> u8 {
        self.0 as u8
    }

    /// Returns the number of slots that hold an item.
    #[inline(always)]
    #[must_use]
    pub const fn filled(self) -> u32 {
        self.bitmap().count_ones()
    }

    /// Returns the indexes of the slots that hold an item.
    #[inline(always)]
    pub fn slots(self) -> impl Iterator<Item = usize> {
        let mut left = self.bitmap();
        std::iter::from_fn(move || {
            let i = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (i < SLOT_COUNT).then_some(i)
        })
    }

    /// Returns a slot that holds no item.
    #[inline(always)]
    #[must_use]
    pub const fn free_slot(self) -> Option<usize> {
        let i = self.bitmap().trailing_ones() as usize;
        if i < SLOT_COUNT { Some(i) } else { None }
    }

    /// Returns the length and kind of slot `i`.
    #[inline(always)]
    #[must_use]
    pub const fn shape(self, i: usize) -> u8 {
        (self.0 >> (SHAPES_SHIFT + SHAPE_BITS * i as u32) & SHAPE) as u8
    }

    /// Returns the shape of the first slot that holds an item, or of any slot if none does.
    #[inline(always)]
    #[must_use]
    pub const fn first_shape(self) -> u8 {
        self.shape((self.bitmap() | 1 << (SLOT_COUNT - 1)).trailing_zeros() as usize)
    }

    /// Returns true if all slots that hold an item are of the same kind as this shape.
    #[inline(always)]
    #[must_use]
    pub fn has_only_like(self, shape: u8) -> bool {
        let filled = SPREAD[self.bitmap() as usize];
        let kinds = self.0 >> (SHAPES_SHIFT + KIND_SHIFT);
        (kinds ^ (filled * (shape >> KIND_SHIFT) as u64)) & (filled * 3) == 0
    }

    /// Returns the word with an item of this shape in slot `i`, perhaps not durable yet.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, i: usize, shape: u8) -> Meta {
        let shift = SHAPES_SHIFT + SHAPE_BITS * i as u32;
        Meta(self.0 & !(SHAPE << shift) | (shape as u64 & SHAPE) << shift | 1 << i | 1 << (8 + i))
    }

    /// Returns the word without the item in slot `i`; its removal is perhaps not durable yet.
    #[inline(always)]
    #[must_use]
    pub const fn without(self, i: usize) -> Meta {
        Meta(self.0 & !(1 << i) | 1 << (8 + i))
    }

    /// Returns true if the item or the emptiness of slot `i` is perhaps not durable yet.
    #[inline(always)]
    #[must_use]
    pub const fn is_locked(self, i: usize) -> bool {
        self.0 >> (8 + i) & 1 == 1
    }

    /// Returns true if anything in the bucket is perhaps not durable yet.
    #[inline(always)]
    #[must_use]
    pub const fn is_any_locked(self) -> bool {
        self.0 & LOCKS != 0
    }

    /// Returns the word without lock bits.
    #[inline(always)]
    #[must_use]
    pub const fn unlocked(self) -> Meta {
        Meta(self.0 & !LOCKS)
    }

    /// Returns the word with all lock bits.
    #[must_use]
    pub const fn locked(self) -> Meta {
        Meta(self.0 | LOCKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_differ_and_are_spread_evenly() {
        let mut counts = [[0u32; BUCKET_COUNT]; 2];
        for i in 0..126_000u64 {
            let signature = i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            let [first, second] = choices(signature);
            assert_ne!(first, second);
            counts[0][first] += 1;
            counts[1][second] += 1;
        }
        assert!(counts.iter().flatten().all(|count| (1700..2300).contains(count)), "{counts:?}");
    }

    #[test]
    fn meta_word_keeps_its_slots_apart() {
        let mut meta = Meta::default();
        for i in 0..SLOT_COUNT {
            assert_eq!(meta.free_slot(), Some(i));
            meta = meta.with(i, 0x3F - i as u8);
        }
        assert_eq!((meta.free_slot(), meta.filled(), meta.slots().count()), (None, 8, 8));
        assert!((0..SLOT_COUNT).all(|i| meta.shape(i) == 0x3F - i as u8 && meta.is_locked(i)));
        let less = meta.unlocked().without(3);
        assert!(less.is_locked(3) && !less.is_locked(2) && less.free_slot() == Some(3) && less.shape(4) == 0x3B);
        for (bitmap, kinds) in (0..=0xFF).flat_map(|bitmap| (0..=0xFFFF).step_by(13).map(move |kinds| (bitmap, kinds)))
        {
            let kind = |i: usize| (kinds >> (2 * i) & 3) as u8;
            let with = |meta: Meta, i| meta.with(i, kind(i) << KIND_SHIFT | 5);
            let meta = (0..SLOT_COUNT).fold(Meta::default(), with);
            let meta = (0..SLOT_COUNT).filter(|i| bitmap >> i & 1 == 0).fold(meta, Meta::without);
            let first = meta.first_shape();
            assert!(meta.bitmap() == 0 || first == meta.shape(meta.slots().next().unwrap()));
            let is_so = meta.slots().all(|i| meta.shape(i) >> KIND_SHIFT == first >> KIND_SHIFT);
            assert_eq!(meta.has_only_like(first), is_so, "{bitmap:b} {kinds:b}");
        }
        assert!(!less.unlocked().is_any_locked() && less.locked().is_locked(0));
    }
}
