//! Reading items.

use pmem::{Checksum, Medium, Offset};

use crate::layout::{FLAG_EXPIRY, HEADER_BYTES, Header};
use crate::{Expiry, ItemError};

/// An item, borrowed from the region.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its header.
    pub header: Header,
    /// The time from which the key is absent.
    pub expiry: Expiry,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Item<'a> {
    /// Reads the item at `at`, which has at most `room_bytes`. Does not compare the checksum: see [`Item::is_intact`].
    ///
    /// # Errors
    /// [`ItemError`] if there can be no item at that offset.
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
        // SAFETY: and the full item.
        let bytes = unsafe { medium.bytes(at.span(header.item_bytes())) }?;
        let (start, body) = bytes.split_at(header.key_start());
        let (key, value) = body.split_at(usize::from(header.key_bytes));
        Ok(Item { header, expiry: expiry_of(&start[HEADER_BYTES..]), key, value })
    }

    /// Returns true if the checksum fits.
    #[inline]
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.checksum() == self.header.checksum
    }

    /// Computes the checksum.
    pub(crate) fn checksum(&self) -> u32 {
        checksum_of_any(&self.header, self.expiry, self.key, self.value)
    }
}

/// Reads the expiry between header and key, if there is one.
#[inline(always)]
fn expiry_of(bytes: &[u8]) -> Expiry {
    bytes.first_chunk().map_or(Expiry::NEVER, |&bytes| Expiry::at_ms(u64::from_le_bytes(bytes)))
}

/// Computes the checksum of an item of any length. The value's part is a call, which folds long values.
#[inline(never)]
pub(crate) fn checksum_of_any(header: &Header, expiry: Expiry, key: &[u8], value: &[u8]) -> u32 {
    let (bytes, ms) = (header.to_bytes(), expiry.ms().to_le_bytes());
    let expiry = if header.flags == 0 { &[][..] } else { &ms };
    Checksum::of([&bytes[..8], &bytes[12..], expiry, key]).update(value).value()
}

/// Computes the checksum of a short item, inlined.
#[inline(always)]
pub(crate) fn checksum(header: &Header, expiry: Expiry, key: &[u8], value: &[u8]) -> u32 {
    let (bytes, ms) = (header.to_bytes(), expiry.ms().to_le_bytes());
    let expiry = if header.flags == 0 { &[][..] } else { &ms };
    Checksum::of([&bytes[..8], &bytes[12..], expiry, key, value]).value()
}
