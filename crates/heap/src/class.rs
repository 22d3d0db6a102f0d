//! Size classes: 16 to 512 bytes by 16, then eight per doubling up to 256 KiB. Larger items are extents.

use crate::steps::{step_at_least, step_size};

/// Slot sizes and slot offsets are multiples of this, so that items can be written with streaming stores.
pub(crate) const GRAIN_BYTES: u64 = 16;

/// The number of classes in each doubling of the slot size.
const CLASSES_PER_DOUBLING: u8 = 8;

/// A size class: its index, 0 to [`Class::COUNT`] - 1, is stored in chunk headers and in index entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// The number of classes.
    pub const COUNT: usize = step_at_least((Class::BYTES_MAX / GRAIN_BYTES) as u32) + 1;
    /// The slot size up to which an item always has the smallest class that holds it.
    pub(crate) const EXACT_BYTES_MAX: u64 = 4_096;
    /// The slot size of the largest class.
    pub const BYTES_MAX: u64 = 262_144;

    /// Returns the smallest class whose slots hold `len_bytes`, or `None` if the item needs an extent.
    #[inline]
    #[must_use]
    pub const fn for_bytes(len_bytes: u64) -> Option<Class> {
        if len_bytes > Class::BYTES_MAX {
            return None;
        }
        Some(Class(step_at_least(len_bytes.div_ceil(GRAIN_BYTES) as u32) as u8))
    }

    /// Returns the class with this index, if there is one.
    #[inline]
    #[must_use]
    pub const fn from_index(index: u8) -> Option<Class> {
        if (index as usize) < Class::COUNT { Some(Class(index)) } else { None }
    }

    /// Iterates over the classes whose slots may serve instead, from the next one to one of twice the size. Classes
    /// of up to [`Class::EXACT_BYTES_MAX`] have none: nodes of trees have exactly their class.
    pub(crate) fn larger(self) -> impl Iterator<Item = Class> {
        let past = if self.bytes() > Class::EXACT_BYTES_MAX { self.0 + 1 + CLASSES_PER_DOUBLING } else { 0 };
        (self.0 + 1..past).map_while(Class::from_index)
    }

    /// Returns the index that is stored.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Returns the size of a slot.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> u64 {
        Class::bytes_of(self.0)
    }

    /// Returns the slot size of the class with this index; 0 if there is none.
    #[inline]
    #[must_use]
    pub const fn bytes_of(index: u8) -> u64 {
        SIZES[index as usize] as u64
    }
}

/// The slot size of every class, padded with zeros so that any byte is a valid index.
static SIZES: [u32; 1 << u8::BITS] = {
    let mut sizes = [0; 1 << u8::BITS];
    let mut class = 0;
    while class < Class::COUNT {
        sizes[class] = step_size(class) * GRAIN_BYTES as u32;
        class += 1;
    }
    sizes
};

/// The format fixes the classes: their number fits the header's field, and the first and last sizes are as stated.
const _: () = {
    assert!(Class::COUNT == 104);
    assert!(Class(0).bytes() == 16 && Class(31).bytes() == 512 && Class(32).bytes() == 576);
    assert!(Class(103).bytes() == Class::BYTES_MAX);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gets_the_smallest_class() {
        let sizes: [u64; Class::COUNT] = core::array::from_fn(|index| Class(index as u8).bytes());
        assert!(sizes.is_sorted() && sizes.iter().all(|bytes| bytes % GRAIN_BYTES == 0));
        let mut smallest = 0;
        for len_bytes in 0..=Class::BYTES_MAX {
            smallest += usize::from(sizes[smallest] < len_bytes);
            assert_eq!(Class::for_bytes(len_bytes), Some(Class(smallest as u8)), "{len_bytes} bytes");
        }
        assert_eq!(Class::for_bytes(Class::BYTES_MAX + 1), None);
        assert_eq!(Class::for_bytes(u64::MAX), None);
    }

    #[test]
    fn classes_grow_at_most_twofold() {
        for class in (0..=u8::MAX).filter_map(Class::from_index) {
            let larger: std::vec::Vec<u64> = class.larger().map(Class::bytes).collect();
            assert!(
                larger.is_sorted() && larger.iter().all(|&bytes| class.bytes() < bytes && bytes <= class.bytes() * 2)
            );
            let is_last = class.bytes() == Class::BYTES_MAX;
            assert_eq!(larger.is_empty(), class.bytes() <= Class::EXACT_BYTES_MAX || is_last, "{class:?}");
        }
    }

    #[test]
    fn indices_come_back() {
        for index in 0..=u8::MAX {
            let class = Class::from_index(index);
            assert_eq!(class.map(Class::index), (usize::from(index) < Class::COUNT).then_some(index));
        }
    }
}
