//! Reading items.

use pmem::{Checksum, Medium, Offset};

use crate::layout::{FLAG_EXPIRY, HEADER_BYTES, Header};
use crate::{Expiry, ItemError};

/// An item as it lies in the region.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its first bytes.
    pub header: Header,
    /// When the key is absent again.
    pub expiry: Expiry,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Item<'a> {
    /// Reads the item at `at`, which has `capacity_bytes` at the most. Checksums are not compared: see [`Item::is_intact`].
    ///
    /// # Errors
    /// [`ItemError`] if no item can lie there.
    ///
    /// # Safety
    /// No thread stores to the item while it is used.
    #[inline(always)]
    pub unsafe fn read<M: Medium>(medium: &'a M, at: Offset, capacity_bytes: u64) -> Result<Item<'a>, ItemError> {
        // SAFETY: the caller's promise covers the header.
        let head = unsafe { medium.bytes(at.span(HEADER_BYTES as u64)) }?;
        let header = Header::from_bytes(*head.first_chunk().expect("the span has that length"));
        if header.flags & !FLAG_EXPIRY != 0 || header.item_bytes() > capacity_bytes {
            return Err(ItemError::Damaged { offset: at.0, what: "an item's header is damaged" });
        }
        // SAFETY: and the whole item.
        let bytes = unsafe { medium.bytes(at.span(header.item_bytes())) }?;
        let (start, body) = bytes.split_at(header.key_start());
        let (key, value) = body.split_at(usize::from(header.key_bytes));
        Ok(Item { header, expiry: expiry_of(&start[HEADER_BYTES..]), key, value })
    }

    /// True if the checksum fits.
    #[inline]
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.checksum() == self.header.checksum
    }

    /// The checksum that fits.
    pub(crate) fn checksum(&self) -> u32 {
        checksum_of_any(&self.header, self.expiry, self.key, self.value)
    }
}

/// The expiry that stands between header and key, if one does.
#[inline(always)]
fn expiry_of(bytes: &[u8]) -> Expiry {
    bytes.first_chunk().map_or(Expiry::NEVER, |&bytes| Expiry::at_ms(u64::from_le_bytes(bytes)))
}

/// The checksum of an item, whatever its length: the value's by a call, which folds long ones.
#[inline(never)]
pub(crate) fn checksum_of_any(header: &Header, expiry: Expiry, key: &[u8], value: &[u8]) -> u32 {
    let (bytes, ms) = (header.to_bytes(), expiry.ms().to_le_bytes());
    let expiry = if header.flags == 0 { &[][..] } else { &ms };
    Checksum::of([&bytes[..8], &bytes[12..], expiry, key]).update(value).value()
}

/// The checksum of a short item, inlined.
#[inline(always)]
pub(crate) fn checksum(header: &Header, expiry: Expiry, key: &[u8], value: &[u8]) -> u32 {
    let (bytes, ms) = (header.to_bytes(), expiry.ms().to_le_bytes());
    let expiry = if header.flags == 0 { &[][..] } else { &ms };
    Checksum::of([&bytes[..8], &bytes[12..], expiry, key, value]).value()
}
