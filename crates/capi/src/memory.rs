//! The caller's memory: slices, results and buffers.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use crate::code;
use crate::failure::Failure;

/// The value length of an absent key.
const ABSENT_LEN: u32 = u32::MAX;

/// Bytes of the caller.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct hikv_slice {
    /// The first byte.
    pub data: *const c_void,
    /// The number of bytes.
    pub len: usize,
}

impl hikv_slice {
    /// Returns the bytes, which live as long as the call.
    ///
    /// # Safety
    /// The caller's rules for slices.
    #[inline(always)]
    pub(crate) unsafe fn bytes<'a>(self) -> Result<&'a [u8], Failure> {
        // SAFETY: as this function's.
        unsafe { array(self.data.cast(), self.len, "slice") }
    }

    /// Returns the bytes as text.
    ///
    /// # Safety
    /// The caller's rules for slices.
    pub(crate) unsafe fn text<'a>(self) -> Result<&'a str, Failure> {
        // SAFETY: as this function's.
        let bytes = unsafe { self.bytes()? };
        str::from_utf8(bytes).map_err(|_| Failure::option(format!("'{}' is not UTF-8", bytes.escape_ascii())))
    }
}

/// Returns an array of the caller.
///
/// # Safety
/// `data` is valid for `len` elements, or null.
#[inline(always)]
pub(crate) unsafe fn array<'a, T>(data: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || len > isize::MAX as usize / size_of::<T>() {
        return Err(bad_array(data.is_null(), len, name));
    }
    // SAFETY: it is not null, not longer than any object can be, and the caller vouches for it.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

#[cold]
fn bad_array(is_null: bool, len: usize, name: &str) -> Failure {
    let why = if is_null { "a null pointer" } else { "too long" };
    Failure::option(format!("the {name} of length {len} is {why}"))
}

/// Returns the target of a pointer of the caller.
///
/// # Safety
/// `pointer` is null or valid, and nothing changes the value during the call.
#[inline(always)]
pub(crate) unsafe fn value<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: as this function's.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::option(format!("the {name} is null")))
}

/// A result of the caller, written once.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Returns the place.
    ///
    /// # Safety
    /// `pointer` is null, or valid for one value during the call.
    pub(crate) unsafe fn new(pointer: *mut T, name: &str) -> Result<Place<T>, Failure> {
        if pointer.is_null() { Err(Failure::option(format!("the {name} is null"))) } else { Ok(Place(pointer)) }
    }

    /// Returns a place that may be null; a value is then lost.
    ///
    /// # Safety
    /// As [`Place::new`].
    pub(crate) unsafe fn optional(pointer: *mut T) -> Place<T> {
        Place(pointer)
    }

    pub(crate) fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the maker of the place vouched for it. The old value is not read.
            unsafe { self.0.write(value) }
        }
    }
}

/// A buffer of the caller, and the place of the length.
pub(crate) struct Out {
    data: *mut u8,
    cap: usize,
    len: Place<usize>,
}

impl Out {
    /// Returns the buffer, with length 0.
    ///
    /// # Safety
    /// `data` is valid for `cap` bytes, and `len` for one value, during the call.
    #[inline(always)]
    pub(crate) unsafe fn new(data: *mut c_void, cap: usize, len: *mut usize) -> Result<Out, Failure> {
        if data.is_null() && cap > 0 {
            return Err(Failure::option(format!("the buffer of length {cap} is a null pointer")));
        }
        // SAFETY: as this function's.
        let len = unsafe { Place::new(len, "place of the length")? };
        len.set(0);
        Ok(Out { data: data.cast(), cap, len })
    }

    /// Copies `bytes` if they fit.
    #[inline(always)]
    pub(crate) fn set(&self, bytes: &[u8]) -> c_int {
        self.len.set(bytes.len());
        if bytes.len() > self.cap {
            return code::SHORT;
        }
        if !bytes.is_empty() {
            // SAFETY: they fit, so the buffer is not null; it is the caller's own, and holds nothing of a store.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.data, bytes.len()) };
        }
        code::OK
    }

    /// Returns an empty page that fills the buffer.
    pub(crate) fn page(&self) -> Page<'_> {
        Page { out: self, used: Cell::new(0) }
    }
}

/// Items in a buffer. Beyond its end, they are counted but not copied.
pub(crate) struct Page<'o> {
    out: &'o Out,
    used: Cell<usize>,
}

impl Page<'_> {
    /// Returns true if an item fits behind the others.
    pub(crate) fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        self.used.get() + 8 + key.len() + value.len() <= self.out.cap
    }

    pub(crate) fn push(&self, key: &[u8], value: &[u8]) {
        self.push_parts(key, value.len() as u32, value);
    }

    pub(crate) fn push_absent(&self) {
        self.push_parts(&[], ABSENT_LEN, &[]);
    }

    fn push_parts(&self, key: &[u8], value_len: u32, value: &[u8]) {
        for part in [&(key.len() as u32).to_le_bytes(), &value_len.to_le_bytes(), key, value] {
            let at = self.used.replace(self.used.get() + part.len());
            if !part.is_empty() && self.used.get() <= self.out.cap {
                // SAFETY: the part ends within the buffer.
                unsafe { ptr::copy_nonoverlapping(part.as_ptr(), self.out.data.add(at), part.len()) };
            }
        }
    }

    /// Sets the page's length, which may exceed the buffer.
    pub(crate) fn finish(&self) -> c_int {
        self.out.len.set(self.used.get());
        if self.used.get() > self.out.cap { code::SHORT } else { code::OK }
    }
}
