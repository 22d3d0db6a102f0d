//! Value chunks.

use heap::{Heap, Place, Reservation};
use pmem::{Checksum, Dram, Medium, Offset};

use crate::Error;
use crate::canary;
use crate::layout::{EXPIRY_BYTES, VALUE_BYTES_MAX, VALUE_HEADER_BYTES};
use crate::word;

const FLAG_EXPIRY: u32 = 1;

/// A value that is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewValue<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// When it expires, in whatever the caller counts; `None` for never.
    pub expiry: Option<u64>,
}

/// A value as it lies in the region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// When it expires.
    pub expiry: Option<u64>,
    /// What no other value of this store ever has, before or after.
    pub stamp: u64,
    /// Where it lies.
    pub place: Place,
    checksum: u32,
}

/// A value but for its bytes: the rest of what its checksum is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// When it expires.
    pub expiry: Option<u64>,
    /// Where it lies.
    pub offset: u64,
    stamp: u64,
    checksum: u32,
}

impl Seal {
    /// True if the checksum fits these bytes.
    #[must_use]
    #[inline(always)]
    pub fn fits(&self, bytes: &[u8]) -> bool {
        checksum(&NewValue { bytes, expiry: self.expiry }, self.stamp) == self.checksum
    }
}

/// Of a value's chunk, but for the checksum itself.
#[inline(always)]
fn checksum(value: &NewValue<'_>, stamp: u64) -> u32 {
    let lengths = (u64::from(value.bytes.len() as u32) | u64::from(flags(value.expiry)) << 32).to_le_bytes();
    let stamp = stamp.to_le_bytes();
    match value.expiry {
        None => Checksum::of([&lengths, &[0; 4], &stamp, value.bytes]).value(),
        Some(expiry) => Checksum::of([&lengths, &[0; 4], &stamp, &expiry.to_le_bytes(), value.bytes]).value(),
    }
}

const fn flags(expiry: Option<u64>) -> u32 {
    if expiry.is_some() { FLAG_EXPIRY } else { 0 }
}

/// A header, and with it an expiry.
struct Head {
    bytes: [u8; (VALUE_HEADER_BYTES + EXPIRY_BYTES) as usize],
    len: usize,
}

impl Head {
    fn new(value: &NewValue<'_>, stamp: u64) -> Head {
        let mut head = Head { bytes: [0; 32], len: head_bytes(value.expiry.is_some()) as usize };
        head.put(0, &(value.bytes.len() as u32).to_le_bytes());
        head.put(4, &flags(value.expiry).to_le_bytes());
        head.put(8, &checksum(value, stamp).to_le_bytes());
        head.put(16, &stamp.to_le_bytes());
        head.put(24, &value.expiry.unwrap_or(0).to_le_bytes());
        head
    }

    fn put(&mut self, at: usize, field: &[u8]) {
        self.bytes[at..at + field.len()].copy_from_slice(field);
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

const fn head_bytes(has_expiry: bool) -> u64 {
    VALUE_HEADER_BYTES + if has_expiry { EXPIRY_BYTES } else { 0 }
}

impl NewValue<'_> {
    /// What its chunk has.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        head_bytes(self.expiry.is_some()) + self.bytes.len() as u64
    }

    /// Writes the value into a chunk of its own and flushes it.
    pub(crate) fn write<'a, M: Medium, D: Dram>(
        &self,
        medium: &M,
        heap: &'a Heap<D>,
        agent: usize,
        stamp: u64,
    ) -> Result<Reservation<'a, D>, Error> {
        if self.bytes.len() > VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len_bytes: self.bytes.len() });
        }
        let chunk = heap.reserve(medium, self.chunk_bytes(), agent)?;
        // SAFETY: the chunk was just reserved; chunks are of multiples of 16 bytes, and so reach as far as the padding.
        unsafe { medium.stream(chunk.place().offset, &[Head::new(self, stamp).as_slice(), self.bytes]) };
        Ok(chunk)
    }

    /// Writes the value over another one of the same length, and flushes it.
    ///
    /// # Safety
    /// The caller holds the lock of the leaf that names it, and nobody else uses it.
    pub(crate) unsafe fn write_over<M: Medium>(&self, medium: &M, at: Offset, stamp: u64) {
        let head = Head::new(self, stamp);
        // SAFETY: the caller's promise.
        unsafe {
            medium.write(at, head.as_slice());
            medium.write(at.plus(head.len as u64), self.bytes);
        }
        if !medium.breaks(canary::ITEM_NOT_FLUSHED) {
            medium.flush(at.span(self.chunk_bytes()));
        }
    }
}

impl<'a> Value<'a> {
    /// The value that the pointer word at `at` names.
    ///
    /// # Safety
    /// Nobody changes or frees it while it is used: the caller holds the lock of the leaf that has the word.
    #[inline(always)]
    pub(crate) unsafe fn read<M: Medium>(medium: &'a M, at: Offset, word: u64) -> Result<Value<'a>, Error> {
        // SAFETY: the caller's promise.
        match unsafe { Value::in_slot(medium, word) } {
            Some(value) => Ok(value),
            // SAFETY: as above.
            None => unsafe { Value::read_any(medium, at, word) },
        }
    }

    /// The same of a value that lies in a slot and does not expire, as most do. `None` says nothing: [`Value::read`] tells what is there.
    ///
    /// # Safety
    /// As for [`Value::read`].
    #[inline(always)]
    pub(crate) unsafe fn in_slot<M: Medium>(medium: &'a M, word: u64) -> Option<Value<'a>> {
        if !word::is_pointer(word) {
            return None;
        }
        // SAFETY: the caller's promise.
        let (place, slot) = unsafe { word::slot(medium, word) }?;
        let (head, rest) = slot.split_first_chunk::<{ VALUE_HEADER_BYTES as usize }>()?;
        let long = |at: usize| head[at..].first_chunk().map(|&bytes| u64::from_le_bytes(bytes));
        let (lengths, checksum, stamp) = (long(0)?, long(8)? as u32, long(16)?);
        // Flags stand above the length.
        let bytes = rest.get(..usize::try_from(lengths).ok()?)?;
        Some(Value { bytes, expiry: None, stamp, place, checksum })
    }

    #[cold]
    #[inline(never)]
    unsafe fn read_any<M: Medium>(medium: &'a M, at: Offset, word: u64) -> Result<Value<'a>, Error> {
        let place = word::place(at, word)?;
        let mut head = Head { bytes: [0; 32], len: VALUE_HEADER_BYTES as usize };
        // SAFETY: the caller's promise.
        head.put(0, unsafe { medium.bytes(place.offset.span(VALUE_HEADER_BYTES)) }?);
        let short = |at: usize| u32::from_le_bytes(*head.bytes[at..].first_chunk().expect("it lies in the header"));
        let (len_bytes, flags, checksum) = (u64::from(short(0)), short(4), short(8));
        let has_expiry = flags & FLAG_EXPIRY != 0;
        let chunk_bytes = head_bytes(has_expiry) + len_bytes;
        if flags & !FLAG_EXPIRY != 0 || chunk_bytes > word::room_bytes(medium, place) {
            return Err(Error::damaged(place.offset, "a value's header is damaged"));
        }
        // SAFETY: as above.
        let chunk = unsafe { medium.bytes(place.offset.span(chunk_bytes)) }?;
        let (start, bytes) = chunk.split_at(head_bytes(has_expiry) as usize);
        let long = |at: usize| start[at..].first_chunk().map(|&bytes| u64::from_le_bytes(bytes));
        let stamp = long(16).expect("it lies in the header");
        Ok(Value { bytes, expiry: long(24).filter(|_| has_expiry), stamp, place, checksum })
    }

    /// True if the checksum fits.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.seal().fits(self.bytes)
    }

    /// What tells of a copy of its bytes whether they are whole.
    #[inline(always)]
    #[must_use]
    pub fn seal(&self) -> Seal {
        Seal { expiry: self.expiry, stamp: self.stamp, checksum: self.checksum, offset: self.place.offset.0 }
    }

    /// What its chunk has.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        head_bytes(self.expiry.is_some()) + self.bytes.len() as u64
    }
}
