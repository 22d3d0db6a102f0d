//! Size classes: 16 to 512 bytes by 16, then eight per doubling up to 256 KiB. Larger items are extents.

use crate::steps::{step_at_least, step_size};

/// Slot sizes and slot offsets are multiples of this, so that items can be written with streaming stores.
pub(crate) const GRAIN_BYTES: u64 = 16;

/// A size class: its index, 0 to [`Class::COUNT`] - 1, is stored in chunk headers and in index entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// The number of classes.
    pub const COUNT: usize = step_at_least((Class::BYTES_MAX / GRAIN_BYTES) as u32) + 1;
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
    fn every_length_gets_the_smallest_class_that_holds_it() {
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
    fn indices_come_back() {
        for index in 0..=u8::MAX {
            let class = Class::from_index(index);
            assert_eq!(class.map(Class::index), (usize::from(index) < Class::COUNT).then_some(index));
        }
    }
}
