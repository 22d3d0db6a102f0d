//! Writing items.

use core::mem::MaybeUninit;
use core::slice;

use pmem::{Medium, Offset};

use crate::canary;
use crate::item::checksum;
use crate::layout::{HEADER_BYTES, Header};
use crate::plain::plain_checksum;
use crate::{Expiry, Item, ItemError};

/// An item that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewItem<'a> {
    /// The key: up to [`crate::KEY_BYTES_MAX`] bytes.
    pub key: &'a [u8],
    /// The value: up to [`crate::VALUE_BYTES_MAX`] bytes.
    pub value: &'a [u8],
    /// When the key is absent again.
    pub expiry: Expiry,
}

impl NewItem<'_> {
    #[inline(always)]
    fn header(&self, epoch: u32) -> Header {
        Header::new(self.key.len(), self.value.len() as u64, self.expiry, epoch)
    }

    /// The room that the item takes.
    #[inline(always)]
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        self.header(0).item_bytes()
    }

    /// Writes the item, of this snapshot epoch, and flushes it; its checksum.
    ///
    /// # Safety
    /// The caller reserved room for it at `at`, a multiple of 16, and to the next multiple behind it.
    #[inline]
    pub unsafe fn write<M: Medium>(&self, medium: &M, at: Offset, epoch: u32) -> u32 {
        let header = self.header(epoch);
        if header.flags != 0 || self.key.len() + self.value.len() > GATHERED_BYTES_MAX {
            // SAFETY: the caller's promise.
            return unsafe { self.write_in_parts(medium, at, header) };
        }
        let mut image = [const { MaybeUninit::uninit() }; HEADER_BYTES + GATHERED_BYTES_MAX];
        let (head, room) = image.split_at_mut(HEADER_BYTES);
        let (key, room) = room.split_at_mut(self.key.len());
        copy_short(key, self.key);
        room[..self.value.len()].write_copy_of_slice(self.value);
        // SAFETY: both were just copied, one behind the other.
        let body = unsafe { slice::from_raw_parts(key.as_ptr().cast(), self.key.len() + self.value.len()) };
        let checksum = plain_checksum(&header.to_bytes(), body);
        head.write_copy_of_slice(&Header { checksum, ..header }.to_bytes());
        // SAFETY: all of it was written; the caller's promise.
        unsafe { write_parts(medium, at, [slice::from_raw_parts(image.as_ptr().cast(), HEADER_BYTES + body.len())]) };
        checksum
    }

    /// # Safety
    /// As for [`NewItem::write`].
    #[inline(never)]
    unsafe fn write_in_parts<M: Medium>(&self, medium: &M, at: Offset, header: Header) -> u32 {
        let header = Header { checksum: checksum(&header, self.expiry, self.key, self.value), ..header };
        let (bytes, ms) = (header.to_bytes(), self.expiry.ms().to_le_bytes());
        let expiry = if header.flags == 0 { &[][..] } else { &ms };
        // SAFETY: the caller's promise.
        unsafe { write_parts(medium, at, [&bytes, expiry, self.key, self.value]) };
        header.checksum
    }
}

/// Keys and values of together so many bytes are put together on the stack, as they will lie: it costs less than to add up
/// and to cut parts that begin and end anywhere.
const GATHERED_BYTES_MAX: usize = 512;

/// Copies a key. Those of the usual lengths by two words that may overlap: a call costs more.
#[inline(always)]
fn copy_short(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    match (from.first_chunk::<8>(), from.last_chunk::<8>()) {
        (Some(first), Some(last)) if from.len() <= 16 => {
            to[..8].write_copy_of_slice(first);
            to[from.len() - 8..].write_copy_of_slice(last);
        }
        _ => _ = to.write_copy_of_slice(from),
    }
}

/// Writes the concatenation of `parts` to `at`, and flushes it.
///
/// # Safety
/// As for [`NewItem::write`].
#[inline(always)]
unsafe fn write_parts<M: Medium, const COUNT: usize>(medium: &M, at: Offset, parts: [&[u8]; COUNT]) {
    if medium.breaks(canary::ITEM_NOT_FLUSHED) {
        let mut start = at;
        for part in parts {
            // SAFETY: the caller's promise.
            unsafe { medium.write(start, part) };
            start = start.plus(part.len() as u64);
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { medium.stream(at, &parts) }
}

/// Writes the bytes of the item that lies at `from`, as they are, to another place, and flushes them.
///
/// # Errors
/// [`ItemError::Medium`] if the item does not lie in the region.
///
/// # Safety
/// As for [`Item::read`], and the caller reserved room for the item at `to`, as for [`NewItem::write`].
pub unsafe fn copy<M: Medium>(medium: &M, to: Offset, from: Offset, item: &Item<'_>) -> Result<(), ItemError> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { medium.bytes(from.span(item.header.item_bytes())) }?;
    // SAFETY: the caller's promise.
    unsafe { medium.stream(to, &[bytes]) };
    Ok(())
}

/// Gives the item at `at` another snapshot epoch, and flushes its header.
///
/// # Safety
/// The caller wrote the item, and nothing names it yet.
pub unsafe fn restamp<M: Medium>(medium: &M, at: Offset, item: &Item<'_>, epoch: u32) {
    let header = Header { epoch, ..item.header };
    let bytes = Header { checksum: Item { header, ..*item }.checksum(), ..header }.to_bytes();
    // SAFETY: the caller's promise; what is read of the item begins behind the header, and is not stored to.
    unsafe { medium.stream(at, &[&bytes]) };
}
