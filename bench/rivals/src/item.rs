//! An item as in the papers' measurements: a key of 16 bytes and a value of up to 15 bytes; and its token, a byte that
//! is 0 while a slot is free.

use engine::Hasher;

use crate::{Error, Result};

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// The maximum bytes of a value.
pub const VALUE_BYTES_MAX: usize = 15;
/// Bytes of an item in a slot, without its token.
pub(crate) const ITEM_BYTES: usize = KEY_BYTES + VALUE_BYTES_MAX;

const USED: u8 = 0x80;
const LENGTH: u8 = 0x0F;

/// A key and a value, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) bytes: [u8; ITEM_BYTES],
    /// The token that marks the slot as used: never 0.
    pub(crate) token: u8,
}

impl Item {
    pub(crate) fn new(key: &[u8], value: &[u8]) -> Result<Item> {
        if key.len() != KEY_BYTES || value.len() > VALUE_BYTES_MAX {
            return Err(Error::Length);
        }
        let mut bytes = [0; ITEM_BYTES];
        bytes[..KEY_BYTES].copy_from_slice(key);
        bytes[KEY_BYTES..][..value.len()].copy_from_slice(value);
        Ok(Item { bytes, token: USED | value.len() as u8 })
    }

    /// Returns the item of a slot whose value has so many bytes.
    #[inline(always)]
    pub(crate) fn of(bytes: [u8; ITEM_BYTES], value_bytes: usize) -> Item {
        Item { bytes, token: USED | value_bytes as u8 }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..KEY_BYTES]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[KEY_BYTES..][..usize::from(self.token & LENGTH)]
    }
}

/// Returns two places of a key, below `counts[0]` and `counts[1]`, by two hash functions: the halves of hikv's hash.
pub(crate) fn places(hasher: &Hasher, key: &[u8], counts: [u64; 2]) -> [u64; 2] {
    let signature = hasher.signature(key);
    let halves = [signature >> 32, signature & 0xFFFF_FFFF];
    [(halves[0] * counts[0]) >> 32, (halves[1] * counts[1]) >> 32]
}
