//! Writing items.

use pmem::{MANY_BYTES, Medium, Offset};

use crate::item::{checksum, checksum_of_any};
use crate::layout::{HEADER_BYTES, Header};
use crate::{Expiry, Item, ItemError};
use crate::{broken, canary};

/// An item to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewItem<'a> {
    /// The key: up to [`crate::KEY_BYTES_MAX`] bytes.
    pub key: &'a [u8],
    /// The value: up to [`crate::VALUE_BYTES_MAX`] bytes.
    pub value: &'a [u8],
    /// The time from which the key is absent.
    pub expiry: Expiry,
}

impl NewItem<'_> {
    #[inline(always)]
    fn header(&self, epoch: u32) -> Header {
        Header::new(self.key.len(), self.value.len() as u64, self.expiry, epoch)
    }

    /// Returns the space that the item needs.
    #[inline(always)]
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        self.header(0).item_bytes()
    }

    /// Writes the item with this snapshot epoch, flushes it, and returns its checksum.
    ///
    /// # Safety
    /// The caller has reserved space for it at `at`, a multiple of 16, up to the next multiple of 16 behind it.
    #[inline]
    pub unsafe fn write<M: Medium>(&self, medium: &M, at: Offset, epoch: u32) -> u32 {
        let header = self.header(epoch);
        if header.flags != 0 || self.key.len() > HEADED_KEY_BYTES_MAX || self.value.len() >= MANY_BYTES {
            // SAFETY: the caller's promise.
            return unsafe { self.write_in_parts(medium, at, header) };
        }
        let checksum = checksum(&header, Expiry::NEVER, self.key, self.value);
        let header = Header { checksum, ..header };
        if self.key.len().is_multiple_of(SIXTEEN) {
            // SAFETY: the caller's promise.
            unsafe { write_parts(medium, at, [&header.to_bytes(), self.key, self.value]) };
            return checksum;
        }
        let mut head = [0; HEADER_BYTES + HEADED_KEY_BYTES_MAX + SIXTEEN];
        *head.first_chunk_mut().expect("it begins with a header") = header.to_bytes();
        let key_end = HEADER_BYTES + self.key.len();
        copy_short(&mut head[HEADER_BYTES..key_end], self.key);
        let (head_bytes, rest) = match self.value.first_chunk::<SIXTEEN>() {
            Some(first) => {
                *head[key_end..].first_chunk_mut().expect("there is space") = *first;
                let head_bytes = key_end.next_multiple_of(SIXTEEN);
                (head_bytes, &self.value[head_bytes - key_end..])
            }
            None => {
                let head_bytes = key_end + self.value.len();
                head[key_end..head_bytes].copy_from_slice(self.value);
                (head_bytes, &[][..])
            }
        };
        // SAFETY: the caller's promise.
        unsafe { write_parts(medium, at, [&head[..head_bytes], rest]) };
        checksum
    }

    /// # Safety
    /// As for [`NewItem::write`].
    #[inline(never)]
    unsafe fn write_in_parts<M: Medium>(&self, medium: &M, at: Offset, header: Header) -> u32 {
        let header = Header { checksum: checksum_of_any(&header, self.expiry, self.key, self.value), ..header };
        let (bytes, ms) = (header.to_bytes(), self.expiry.ms().to_le_bytes());
        let expiry = if header.flags == 0 { &[][..] } else { &ms };
        // SAFETY: the caller's promise.
        unsafe { write_parts(medium, at, [&bytes, expiry, self.key, self.value]) };
        header.checksum
    }
}

/// The longest key that is assembled on the stack. Media write in units of 16 bytes. A key of a multiple of 16 bytes
/// is written directly from its source, and so is its value. Otherwise header and key, up to this length, are
/// assembled on the stack together with the first bytes of the value, enough to fill the last unit; the rest of the
/// value is written directly from its source.
const HEADED_KEY_BYTES_MAX: usize = 48;
const SIXTEEN: usize = 16;

/// Copies a key. The usual lengths are copied as two words that may overlap, because a call costs more.
#[inline(always)]
fn copy_short(to: &mut [u8], from: &[u8]) {
    match (from.first_chunk::<8>(), from.last_chunk::<8>(), to.first_chunk_mut::<8>()) {
        (Some(first), Some(last), Some(to_first)) if from.len() <= 16 => {
            // Not `copy_from_slice`, which is a call even for a known length.
            *to_first = *first;
            *to.last_chunk_mut().expect("it has eight bytes") = *last;
        }
        _ => to.copy_from_slice(from),
    }
}

/// Writes the concatenation of `parts` to `at` and flushes it.
///
/// # Safety
/// As for [`NewItem::write`].
#[inline(always)]
unsafe fn write_parts<M: Medium, const COUNT: usize>(medium: &M, at: Offset, parts: [&[u8]; COUNT]) {
    if medium.breaks(canary::ITEM_NOT_FLUSHED) {
        return broken::store_unflushed(medium, at, &parts);
    }
    // SAFETY: the caller's promise.
    unsafe { medium.stream(at, &parts) }
}

/// Copies the bytes of the item at `from` unchanged to another place and flushes them.
///
/// # Errors
/// [`ItemError::Medium`] if the item extends beyond the region.
///
/// # Safety
/// As for [`Item::read`]; and the caller has reserved space for the item at `to`, as for [`NewItem::write`].
pub unsafe fn copy<M: Medium>(medium: &M, to: Offset, from: Offset, item: &Item<'_>) -> Result<(), ItemError> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { medium.bytes(from.span(item.header.item_bytes())) }?;
    // SAFETY: the caller's promise.
    unsafe { medium.stream(to, &[bytes]) };
    Ok(())
}

/// Changes the snapshot epoch of the item at `at` and flushes its header.
///
/// # Safety
/// The caller wrote the item, and nothing refers to it yet.
pub unsafe fn restamp<M: Medium>(medium: &M, at: Offset, item: &Item<'_>, epoch: u32) {
    let header = Header { epoch, ..item.header };
    let bytes = Header { checksum: Item { header, ..*item }.checksum(), ..header }.to_bytes();
    // SAFETY: the caller's promise; the bytes that are read of the item begin behind the header and are not stored
    // to.
    unsafe { medium.stream(at, &[&bytes]) };
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use pmem::{Bytes, LINE_BYTES, Space};
    use pmem_sim::{Model, Sim};

    use super::*;
    use crate::Plain;

    #[test]
    fn items_of_any_length_round_trip() {
        const AT: Offset = Offset(LINE_BYTES);
        const BUFFER_BYTES: usize = 1024;
        let sim = Sim::new(0, Model::Line);
        sim.grow(1 << 16).expect("a simulated region grows");
        let source: Vec<u8> = (0..800).map(|i| i as u8 | 1).collect();
        for key_bytes in 0..=HEADED_KEY_BYTES_MAX + 17 {
            for value_bytes in (0..=2 * SIXTEEN + 1).chain([256, 257, 600]) {
                let (key, value) = source[..key_bytes + value_bytes].split_at(key_bytes);
                let item = NewItem { key, value, expiry: Expiry::NEVER };
                // SAFETY: only this thread uses the space.
                let checksum = unsafe {
                    sim.write(AT, &[0xEE; BUFFER_BYTES]);
                    item.write(&sim, AT, 7)
                };
                // SAFETY: as above.
                let slot = unsafe { sim.bytes(AT.span(BUFFER_BYTES as u64)) }.expect("the region has it");
                let read = Plain::in_slot(slot).expect("an item is there");
                assert!(read.is_intact() && read.checksum() == checksum, "{key_bytes} and {value_bytes} bytes");
                assert_eq!((read.key(), read.value(), read.item_bytes()), (key, value, item.item_bytes()));
                let behind = &slot[item.item_bytes() as usize..];
                let (padding, beyond) = behind.split_at(behind.len() % SIXTEEN);
                assert!(padding.iter().all(|&byte| byte == 0) && beyond.iter().all(|&byte| byte == 0xEE));
            }
        }
    }
}
