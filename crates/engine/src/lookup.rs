//! The result of an optimistic lookup, in two registers: an enumeration of a slice and two more cases would be returned
//! through memory.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;

/// The caller's buffer for a value that does not stay in place. [`Reads::get`](crate::Reads::get) reads longer
/// values. A stack frame of a page or more would have its pages touched one by one.
pub type ValueBuffer = [MaybeUninit<u64>; 1024 / 8];

/// Returns a buffer without initialised bytes.
#[must_use]
#[inline(always)]
pub const fn empty_buffer() -> ValueBuffer {
    [MaybeUninit::uninit(); 1024 / 8]
}

/// The result of [`Reads::lookup`](crate::Reads::lookup), packed into two registers.
#[derive(Clone, Copy, Debug)]
pub struct PackedLookup<'a> {
    /// The value's first byte; null if no value was found.
    value: *const u8,
    /// The value's length; without a value, 0 if the key is absent and 1 if the lookup is unsure.
    len_bytes: usize,
    _value: PhantomData<&'a [u8]>,
}

/// The result of a lookup, unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup<'a> {
    /// The key's value.
    Value(&'a [u8]),
    /// The key is absent.
    Absent,
    /// The lookup is unsure; [`Reads::get`](crate::Reads::get) decides.
    Unsure,
}

impl<'a> PackedLookup<'a> {
    /// The key is absent.
    pub const ABSENT: PackedLookup<'a> = PackedLookup { value: ptr::null(), len_bytes: 0, _value: PhantomData };
    /// The lookup is unsure.
    pub const UNSURE: PackedLookup<'a> = PackedLookup { value: ptr::null(), len_bytes: 1, _value: PhantomData };

    /// Returns the result for a value that was found.
    #[inline(always)]
    #[must_use]
    pub const fn at(value: &'a [u8]) -> PackedLookup<'a> {
        PackedLookup { value: value.as_ptr(), len_bytes: value.len(), _value: PhantomData }
    }

    /// Returns the result for a value that does not stay in place: a copy in `buffer`, or `UNSURE` if the value is
    /// longer.
    #[inline(always)]
    #[must_use]
    pub fn copied(value: &[u8], buffer: &'a mut [MaybeUninit<u64>]) -> PackedLookup<'a> {
        let (words, rest) = value.as_chunks::<8>();
        let Some(buffer) = buffer.get_mut(..value.len().div_ceil(8)) else { return PackedLookup::UNSURE };
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for (word, place) in words.iter().chain([&last]).zip(&mut *buffer) {
            place.write(u64::from_ne_bytes(*word));
        }
        PackedLookup { value: buffer.as_ptr().cast(), len_bytes: value.len(), _value: PhantomData }
    }

    /// Returns the result as an enumeration.
    #[inline(always)]
    #[must_use]
    pub fn unpack(self) -> Lookup<'a> {
        match NonNull::new(self.value.cast_mut()) {
            // SAFETY: a pointer that is not null was made from a slice of that length and lifetime.
            Some(value) => Lookup::Value(unsafe { slice::from_raw_parts(value.as_ptr(), self.len_bytes) }),
            None if self.len_bytes == 0 => Lookup::Absent,
            None => Lookup::Unsure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_packs_and_unpacks() {
        let value = [1, 2, 3];
        for value in [&value[..], &[]] {
            assert_eq!(PackedLookup::at(value).unpack(), Lookup::Value(value));
        }
        let (mut buffer, value) = (empty_buffer(), [7; 1025]);
        for len_bytes in [0, 1, 8, 15, 1024] {
            assert_eq!(
                PackedLookup::copied(&value[..len_bytes], &mut buffer).unpack(),
                Lookup::Value(&value[..len_bytes])
            );
        }
        assert_eq!(PackedLookup::copied(&value, &mut buffer).unpack(), Lookup::Unsure);
        assert_eq!((PackedLookup::ABSENT.unpack(), PackedLookup::UNSURE.unpack()), (Lookup::Absent, Lookup::Unsure));
    }
}
