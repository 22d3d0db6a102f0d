//! The results of List and Range.
//!
//! ```text
//! List:   count 4; for each: key's length 2, key, padding to 4
//! Range:  count 4; for each: key's length 2, 0 2, value's length 4, key, value, padding to 4
//! ```

use crate::bytes::{put, u16_at, u32_at};

const COUNT_BYTES: usize = 4;
const ALIGNMENT_BYTES: usize = 4;

/// Writes keys to a buffer of limited size.
#[derive(Debug)]
pub struct ListWriter {
    out: Vec<u8>,
    buffer_bytes: usize,
    count: u32,
}

impl ListWriter {
    /// Creates a list for a buffer of this size, which must hold at least a count.
    #[must_use]
    pub fn new(buffer_bytes: usize) -> ListWriter {
        ListWriter { out: vec![0; COUNT_BYTES], buffer_bytes, count: 0 }
    }

    /// Returns the list, leaving an empty one.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::replace(self, ListWriter::new(self.buffer_bytes)).out
    }

    /// Appends a key; returns false if it does not fit.
    pub fn push(&mut self, key: &[u8]) -> bool {
        let len_bytes = (2 + key.len()).next_multiple_of(ALIGNMENT_BYTES);
        self.append(len_bytes, &[&(key.len() as u16).to_le_bytes(), key])
    }

    fn append(&mut self, len_bytes: usize, parts: &[&[u8]]) -> bool {
        let used = self.out.len();
        if used + len_bytes > self.buffer_bytes {
            return false;
        }
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
        self.out.resize(used + len_bytes, 0);
        self.count += 1;
        put(&mut self.out, 0, &self.count.to_le_bytes());
        true
    }
}

/// Writes keys and values to a buffer of limited size.
#[derive(Debug)]
pub struct RangeWriter(ListWriter);

impl RangeWriter {
    /// Creates a list for a buffer of this size, which must hold at least a count.
    #[must_use]
    pub fn new(buffer_bytes: usize) -> RangeWriter {
        RangeWriter(ListWriter::new(buffer_bytes))
    }

    /// Returns the list, leaving an empty one.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.take()
    }

    /// Returns the buffer size for a single item.
    #[must_use]
    pub fn alone_bytes(key: &[u8], value: &[u8]) -> usize {
        COUNT_BYTES + RangeWriter::item_bytes(key, value)
    }

    /// Appends an item; returns false if it does not fit.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let lens = [u32::from(key.len() as u16), value.len() as u32].map(u32::to_le_bytes);
        self.0.append(RangeWriter::item_bytes(key, value), &[&lens[0], &lens[1], key, value])
    }

    fn item_bytes(key: &[u8], value: &[u8]) -> usize {
        (8 + key.len() + value.len()).next_multiple_of(ALIGNMENT_BYTES)
    }
}

/// An iterator over the keys of a list; it ends where the list is invalid.
#[derive(Clone, Debug)]
pub struct Keys<'a> {
    rest: &'a [u8],
    count: u32,
}

impl<'a> Keys<'a> {
    /// Creates the iterator over the list in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Keys<'a> {
        Keys { rest: bytes.get(COUNT_BYTES..).unwrap_or_default(), count: u32_at(bytes, 0) }
    }

    fn cut(&mut self, len_bytes: usize) -> Option<&'a [u8]> {
        let taken = self.rest.get(..len_bytes)?;
        self.rest = self.rest.get(len_bytes.next_multiple_of(ALIGNMENT_BYTES)..).unwrap_or_default();
        Some(taken)
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.count = self.count.checked_sub(1)?;
        let len = usize::from(u16_at(self.rest, 0));
        self.cut(2 + len).map(|item| &item[2..])
    }
}

/// An iterator over the items of a range; it ends where the range is invalid.
#[derive(Clone, Debug)]
pub struct Items<'a>(Keys<'a>);

impl<'a> Items<'a> {
    /// Creates the iterator over the range in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Items<'a> {
        Items(Keys::new(bytes))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.0.count = self.0.count.checked_sub(1)?;
        let (key_bytes, value_bytes) = (usize::from(u16_at(self.0.rest, 0)), u32_at(self.0.rest, 4) as usize);
        let item = self.0.cut(8 + key_bytes + value_bytes)?;
        Some(item[8..].split_at(key_bytes))
    }
}
