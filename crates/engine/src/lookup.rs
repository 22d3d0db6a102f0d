//! What a look tells of a key, in two registers: an enumeration of a slice and of two more cases is handed over through memory.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;

/// Room for a value that does not stay where it lies, the caller's: longer values are shown by [`Engine::get`](crate::Engine::get). A frame of
/// a page or more would have its pages touched one by one.
pub type ValueBuffer = [MaybeUninit<u64>; 1024 / 8];

/// Room that nothing was written to.
#[must_use]
#[inline(always)]
pub const fn empty_buffer() -> ValueBuffer {
    [MaybeUninit::uninit(); 1024 / 8]
}

/// What [`Engine::lookup`](crate::Engine::lookup) tells.
#[derive(Clone, Copy, Debug)]
pub struct PackedLookup<'a> {
    /// The value's first byte; null if none is seen.
    value: *const u8,
    /// Its length; without one, whether the look is sure.
    len_bytes: usize,
    _value: PhantomData<&'a [u8]>,
}

/// The same, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup<'a> {
    /// The key's value.
    Value(&'a [u8]),
    /// The key is not there.
    Absent,
    /// A look does not tell: [`Engine::get`](crate::Engine::get) does.
    Unsure,
}

impl<'a> PackedLookup<'a> {
    /// The key is not there.
    pub const ABSENT: PackedLookup<'a> = PackedLookup { value: ptr::null(), len_bytes: 0, _value: PhantomData };
    /// A look does not tell.
    pub const UNSURE: PackedLookup<'a> = PackedLookup { value: ptr::null(), len_bytes: 1, _value: PhantomData };

    /// The key's value.
    #[inline(always)]
    #[must_use]
    pub const fn at(value: &'a [u8]) -> PackedLookup<'a> {
        PackedLookup { value: value.as_ptr(), len_bytes: value.len(), _value: PhantomData }
    }

    /// A copy, in `buffer`, of a value that does not stay; a look does not tell of one that is longer.
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

    /// What it tells.
    #[inline(always)]
    #[must_use]
    pub fn unpack(self) -> Lookup<'a> {
        match NonNull::new(self.value.cast_mut()) {
            // SAFETY: what is not null was made of a slice of that length and lifetime.
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
