//! Writing items.

use pmem::{Medium, Offset};

use crate::canary;
use crate::item::checksum_start;
use crate::layout::{EXPIRY_BYTES, HEADER_BYTES, Header};
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
        let checksum = checksum_start(&header, self.expiry).update(self.key).update(self.value).value();
        let mut head = [0; HEADER_BYTES + EXPIRY_BYTES];
        head[..HEADER_BYTES].copy_from_slice(&Header { checksum, ..header }.to_bytes());
        head[HEADER_BYTES..].copy_from_slice(&self.expiry.ms().to_le_bytes());
        let parts = [&head[..header.key_start()], self.key, self.value];
        if medium.breaks(canary::ITEM_NOT_FLUSHED) {
            let starts = [at.0, at.0 + header.key_start() as u64, at.0 + (header.key_start() + self.key.len()) as u64];
            // SAFETY: the caller's promise.
            parts.iter().zip(starts).for_each(|(part, start)| unsafe { medium.write(Offset(start), part) });
            return checksum;
        }
        // SAFETY: the caller's promise.
        unsafe { medium.stream(at, &parts) };
        checksum
    }
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
    let bytes = unsafe { medium.item(from.span(item.header.item_bytes())) }?;
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
