//! Value chunks.

use heap::{Heap, Place, Reservation};
use pmem::{Checksum, Dram, Medium, Offset};

use crate::Error;
use crate::canary;
use crate::layout::{EXPIRY_BYTES, VALUE_BYTES_MAX, VALUE_HEADER_BYTES};
use crate::word;

const FLAG_EXPIRY: u32 = 1;

/// The owner of a value: its key's checksum, from which, with the value's place, the tag in the value's header is
/// computed. If a stale or misplaced page gives a key another key's word or value, the tag does not match.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    checksum: u32,
    /// 0 in a tree whose values have no tags.
    mask: u32,
}

impl Owner {
    pub(crate) const fn new(checksum: u32, has_tags: bool) -> Owner {
        Owner { checksum, mask: if has_tags { u32::MAX } else { 0 } }
    }

    /// Returns the tag of the owner's value at `at`, which is a multiple of 16.
    #[inline(always)]
    const fn tag(self, at: Offset) -> u32 {
        (self.checksum ^ (at.0 / 16) as u32) & self.mask
    }

    /// Returns true if the value at `at` is the owner's.
    #[inline(always)]
    const fn owns(self, at: Offset, tag: u32) -> bool {
        tag & self.mask == self.tag(at)
    }
}

/// A value to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewValue<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The expiry, in a unit that the caller defines; `None` for never.
    pub expiry: Option<u64>,
}

/// A value, borrowed from the region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The expiry.
    pub expiry: Option<u64>,
    /// A number that no other value of this store ever has.
    pub stamp: u64,
    /// The value's place.
    pub place: Place,
    tag: u32,
    checksum: u32,
}

/// The parts of a value, other than its bytes, that its checksum covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// The expiry.
    pub expiry: Option<u64>,
    /// The value's offset.
    pub offset: u64,
    stamp: u64,
    tag: u32,
    checksum: u32,
}

impl Seal {
    /// Returns true if the checksum fits these bytes.
    #[must_use]
    #[inline(always)]
    pub fn fits(&self, bytes: &[u8]) -> bool {
        checksum(&NewValue { bytes, expiry: self.expiry }, self.stamp, self.tag) == self.checksum
    }
}

/// Computes the checksum of a value's chunk, without the checksum itself.
#[inline(always)]
fn checksum(value: &NewValue<'_>, stamp: u64, tag: u32) -> u32 {
    let lengths = (u64::from(value.bytes.len() as u32) | u64::from(flags(value.expiry)) << 32).to_le_bytes();
    let (stamp, tag) = (&stamp.to_le_bytes()[..], &tag.to_le_bytes()[..]);
    match value.expiry {
        None => Checksum::of([&lengths[..], tag, stamp, value.bytes]).value(),
        Some(expiry) => Checksum::of([&lengths[..], tag, stamp, &expiry.to_le_bytes(), value.bytes]).value(),
    }
}

const fn flags(expiry: Option<u64>) -> u32 {
    if expiry.is_some() { FLAG_EXPIRY } else { 0 }
}

/// A header, with an expiry if there is one.
struct Head {
    bytes: [u8; (VALUE_HEADER_BYTES + EXPIRY_BYTES) as usize],
    len: usize,
}

impl Head {
    fn new(value: &NewValue<'_>, stamp: u64, tag: u32) -> Head {
        let mut head = Head { bytes: [0; 32], len: head_bytes(value.expiry.is_some()) as usize };
        head.put(0, &(value.bytes.len() as u32).to_le_bytes());
        head.put(4, &flags(value.expiry).to_le_bytes());
        head.put(8, &checksum(value, stamp, tag).to_le_bytes());
        head.put(12, &tag.to_le_bytes());
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
    /// Returns the size of its chunk.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        head_bytes(self.expiry.is_some()) + self.bytes.len() as u64
    }

    /// Writes the value into a new chunk and flushes it.
    pub(crate) fn write<'a, M: Medium, D: Dram>(
        &self,
        medium: &M,
        heap: &'a Heap<D>,
        agent: usize,
        (stamp, owner): (u64, Owner),
    ) -> Result<Reservation<'a, D>, Error> {
        if self.bytes.len() > VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len_bytes: self.bytes.len() });
        }
        let chunk = heap.reserve(medium, self.chunk_bytes(), agent)?;
        let at = chunk.place().offset;
        let head = Head::new(self, stamp, owner.tag(at));
        // SAFETY: the chunk was just reserved; chunks are of multiples of 16 bytes, and so reach as far as the padding.
        unsafe { medium.stream(at, &[head.as_slice(), self.bytes]) };
        Ok(chunk)
    }

    /// Writes the value over another one of the same length and flushes it.
    ///
    /// # Safety
    /// The caller holds the lock of the leaf that refers to it, and no other thread uses it.
    pub(crate) unsafe fn write_over<M: Medium>(&self, medium: &M, at: Offset, (stamp, owner): (u64, Owner)) {
        let head = Head::new(self, stamp, owner.tag(at));
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
    /// Reads the owner's value to which the pointer word at `at` refers.
    ///
    /// # Safety
    /// No thread changes or frees it while it is used: the caller holds the lock of the leaf that contains the word.
    #[inline(always)]
    pub(crate) unsafe fn read<M: Medium>(
        medium: &'a M,
        at: Offset,
        word: u64,
        owner: Owner,
    ) -> Result<Value<'a>, Error> {
        // SAFETY: the caller's promise.
        match unsafe { Value::in_slot(medium, word, owner) } {
            Some(value) => Ok(value),
            // SAFETY: as above.
            None => unsafe { Value::read_any(medium, at, word, owner) },
        }
    }

    /// Reads a value in a slot that does not expire, the usual case. `None` means that [`Value::read`] must decide.
    ///
    /// # Safety
    /// As for [`Value::read`].
    #[inline(always)]
    pub(crate) unsafe fn in_slot<M: Medium>(medium: &'a M, word: u64, owner: Owner) -> Option<Value<'a>> {
        if !word::is_pointer(word) {
            return None;
        }
        // SAFETY: the caller's promise.
        let (place, slot) = unsafe { word::slot(medium, word) }?;
        let (head, rest) = slot.split_first_chunk::<{ VALUE_HEADER_BYTES as usize }>()?;
        let long = |at: usize| head[at..].first_chunk().map(|&bytes| u64::from_le_bytes(bytes));
        let (lengths, checks, stamp) = (long(0)?, long(8)?, long(16)?);
        let (checksum, tag) = (checks as u32, (checks >> 32) as u32);
        // Flags are above the length.
        let bytes = rest.get(..usize::try_from(lengths).ok()?)?;
        owner.owns(place.offset, tag).then_some(Value { bytes, expiry: None, stamp, place, tag, checksum })
    }

    #[cold]
    #[inline(never)]
    unsafe fn read_any<M: Medium>(medium: &'a M, at: Offset, word: u64, owner: Owner) -> Result<Value<'a>, Error> {
        let place = word::place(at, word)?;
        let mut head = Head { bytes: [0; 32], len: VALUE_HEADER_BYTES as usize };
        // SAFETY: the caller's promise.
        head.put(0, unsafe { medium.bytes(place.offset.span(VALUE_HEADER_BYTES)) }?);
        let short = |at: usize| u32::from_le_bytes(*head.bytes[at..].first_chunk().expect("it lies in the header"));
        let (len_bytes, flags, checksum, tag) = (u64::from(short(0)), short(4), short(8), short(12));
        let has_expiry = flags & FLAG_EXPIRY != 0;
        let chunk_bytes = head_bytes(has_expiry) + len_bytes;
        if flags & !FLAG_EXPIRY != 0 || chunk_bytes > word::capacity_bytes(medium, place) {
            return Err(Error::damaged(place.offset, "a value's header is damaged"));
        }
        if !owner.owns(place.offset, tag) {
            return Err(Error::damaged(place.offset, "a value belongs to another key or another place"));
        }
        // SAFETY: as above.
        let chunk = unsafe { medium.bytes(place.offset.span(chunk_bytes)) }?;
        let (start, bytes) = chunk.split_at(head_bytes(has_expiry) as usize);
        let long = |at: usize| start[at..].first_chunk().map(|&bytes| u64::from_le_bytes(bytes));
        let stamp = long(16).expect("it lies in the header");
        Ok(Value { bytes, expiry: long(24).filter(|_| has_expiry), stamp, place, tag, checksum })
    }

    /// Returns true if the checksum fits.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.seal().fits(self.bytes)
    }

    /// Returns the data needed to check a copy of its bytes.
    #[inline(always)]
    #[must_use]
    pub fn seal(&self) -> Seal {
        let Value { expiry, stamp, tag, checksum, .. } = *self;
        Seal { expiry, stamp, tag, checksum, offset: self.place.offset.0 }
    }

    /// Returns the size of its chunk.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        head_bytes(self.expiry.is_some()) + self.bytes.len() as u64
    }
}
