//! The bytes of an item.
//!
//! ```text
//! +0  value length, u32
//! +4  key length, u16
//! +6  flags, u16              bit 0: an expiry follows the header; others: an unknown item
//! +8  checksum, u32           CRC-32C of bytes 0..8, 12..16, the expiry, the key and the value
//! +12 snapshot epoch, u32     0 if no snapshot was ever taken
//! +16 expiry, u64             if bit 0 of the flags is set: milliseconds since the Unix epoch
//! +16 or 24: key, value
//! ```
//!
//! The paper's item has lengths, key and value (section 3.4.1). The other fields make damage visible, let keys
//! expire, and support snapshots.

use pmem::Checksum;

use crate::{Expiry, KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The size of the header; the expiry or the key follows.
pub const HEADER_BYTES: usize = 16;
/// The size of the expiry, if there is one.
pub const EXPIRY_BYTES: usize = 8;
/// The flag of an item that has an expiry.
pub const FLAG_EXPIRY: u16 = 1;

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize && VALUE_BYTES_MAX <= u32::MAX as u64);

/// The header of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The value's length.
    pub value_bytes: u32,
    /// The key's length.
    pub key_bytes: u16,
    /// [`FLAG_EXPIRY`], or 0.
    pub flags: u16,
    /// The checksum over everything except itself.
    pub checksum: u32,
    /// The snapshot epoch of the put.
    pub epoch: u32,
}

impl Header {
    /// Creates the header of an item of this snapshot epoch, with a checksum of 0.
    #[must_use]
    pub fn new(key_bytes: usize, value_bytes: u64, expiry: Expiry, epoch: u32) -> Header {
        let flags = if expiry.is_never() { 0 } else { FLAG_EXPIRY };
        Header { value_bytes: value_bytes as u32, key_bytes: key_bytes as u16, flags, checksum: 0, epoch }
    }

    /// Returns the bytes before the key, with or without the expiry.
    #[inline(always)]
    #[must_use]
    pub fn key_start(&self) -> usize {
        HEADER_BYTES + usize::from(self.flags & FLAG_EXPIRY) * EXPIRY_BYTES
    }

    /// Starts the checksum with the header's part; the caller continues it over expiry, key and value.
    #[inline(always)]
    #[must_use]
    pub fn checksum_start(&self) -> Checksum {
        let bytes = self.to_bytes();
        Checksum::default().update(&bytes[..8]).update(&bytes[12..])
    }

    /// Returns the stored bytes.
    #[inline(always)]
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let low = u64::from(self.value_bytes) | u64::from(self.key_bytes) << 32 | u64::from(self.flags) << 48;
        let high = u64::from(self.checksum) | u64::from(self.epoch) << 32;
        (u128::from(low) | u128::from(high) << 64).to_le_bytes()
    }

    /// Decodes the stored bytes.
    #[inline(always)]
    #[must_use]
    pub fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Header {
        let word = u128::from_le_bytes(bytes);
        Header {
            value_bytes: word as u32,
            key_bytes: (word >> 32) as u16,
            flags: (word >> 48) as u16,
            checksum: (word >> 64) as u32,
            epoch: (word >> 96) as u32,
        }
    }

    /// Returns the size of header, expiry, key and value.
    #[inline(always)]
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        self.key_start() as u64 + u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_lies_as_drawn() {
        let header = Header {
            value_bytes: 0x0403_0201,
            key_bytes: 0x0605,
            flags: 0x0807,
            checksum: 0x0C0B_0A09,
            epoch: 0x100F_0E0D,
        };
        assert_eq!(header.to_bytes(), core::array::from_fn(|i| i as u8 + 1));
        assert_eq!(Header::from_bytes(header.to_bytes()), header);
        assert_eq!(header.item_bytes(), 24 + 0x0605 + 0x0403_0201);
        assert_eq!(Header { flags: 0, ..header }.item_bytes(), 16 + 0x0605 + 0x0403_0201);
    }
}
