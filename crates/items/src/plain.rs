//! Items without an expiry, the most common ones: header and body, read in place.

use pmem::Checksum;

use crate::KEY_BYTES_MAX;
use crate::layout::{HEADER_BYTES, Header};

/// An item without expiry. It is small enough to be passed in registers.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    head: &'a [u8; HEADER_BYTES],
    key_bytes: u16,
    /// The key and the value.
    body: &'a [u8],
}

impl<'a> Plain<'a> {
    /// Returns the item at the start of `slot`; `None` if it has an expiry or the bytes cannot be an item.
    #[inline(always)]
    #[must_use]
    pub fn in_slot(slot: &'a [u8]) -> Option<Plain<'a>> {
        let (head, rest) = slot.split_first_chunk()?;
        let Header { value_bytes, key_bytes, flags, .. } = Header::from_bytes(*head);
        let body = rest.get(..value_bytes as usize + usize::from(key_bytes))?;
        (flags == 0).then_some(Plain { head, key_bytes, body })
    }

    /// Returns the item at the start of `slot` if it has no expiry and this key. Flags and key length are compared in
    /// one step, and keys of the usual lengths as two words, because a call costs more.
    #[inline(always)]
    #[must_use]
    pub fn of_key(slot: &'a [u8], key: &[u8]) -> Option<Plain<'a>> {
        let (head, rest) = slot.split_first_chunk::<HEADER_BYTES>()?;
        let lengths = u64::from_le_bytes(*head.first_chunk().expect("a word"));
        if key.len() > KEY_BYTES_MAX || lengths >> 32 != key.len() as u64 {
            return None;
        }
        let body = rest.get(..lengths as u32 as usize + key.len())?;
        is_same(&body[..key.len()], key).then_some(Plain { head, key_bytes: key.len() as u16, body })
    }

    /// The key.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.split().0
    }

    /// The value.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        self.split().1
    }

    #[inline(always)]
    fn split(&self) -> (&'a [u8], &'a [u8]) {
        self.body.split_at(usize::from(self.key_bytes))
    }

    /// Returns the size of header, key and value.
    #[inline(always)]
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        (HEADER_BYTES + self.body.len()) as u64
    }

    /// Returns the checksum in the header.
    #[inline(always)]
    #[must_use]
    pub fn checksum(&self) -> u32 {
        Header::from_bytes(*self.head).checksum
    }

    /// Returns its snapshot epoch.
    #[inline(always)]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        Header::from_bytes(*self.head).epoch
    }

    /// Returns true if the checksum fits.
    #[inline(always)]
    #[must_use]
    pub fn is_intact(&self) -> bool {
        plain_checksum(self.head, self.body) == self.checksum()
    }
}

/// Compares keys of equal length. Those of 8 to 24 bytes, with the prefix of a tree, are compared as words, because a
/// call costs more.
#[inline(always)]
fn is_same(own: &[u8], key: &[u8]) -> bool {
    let is_same_at_ends = |first, last| own.first_chunk::<8>() == Some(first) && own.last_chunk::<8>() == Some(last);
    match (key.first_chunk(), key.last_chunk()) {
        (Some(first), Some(last)) if key.len() <= 16 => is_same_at_ends(first, last),
        (Some(first), Some(last)) if key.len() <= 24 => {
            is_same_at_ends(first, last) && own[8..].first_chunk::<8>() == key[8..].first_chunk()
        }
        _ => own == key,
    }
}

/// Computes the checksum of an item without expiry: over everything except the checksum's own bytes.
#[inline(always)]
fn plain_checksum(head: &[u8; HEADER_BYTES], body: &[u8]) -> u32 {
    let (lengths, epoch) = (head.first_chunk().expect("a word"), head.last_chunk().expect("half a word"));
    Checksum::in_line(lengths, epoch, body).value()
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::Expiry;

    fn slot(expiry: Expiry) -> Vec<u8> {
        let header = Header::new(3, 4, expiry, 9);
        let checksum = header.checksum_start().update(b"keylong").value();
        [&Header { checksum, ..header }.to_bytes()[..], b"keylong", &[0; 9]].concat()
    }

    #[test]
    fn plain_item_detects_bit_flips() {
        let slot = slot(Expiry::NEVER);
        let item = Plain::in_slot(&slot).expect("an item");
        assert_eq!(
            (item.key(), item.value(), item.item_bytes(), item.is_intact()),
            (&b"key"[..], &b"long"[..], 23, true)
        );
        assert_eq!(Plain::of_key(&slot, b"key").map(|item| item.value()), Some(&b"long"[..]));
        assert!([&b"ke"[..], b"keyl", b"kex", b""].iter().all(|other| Plain::of_key(&slot, other).is_none()));
        for bit in 0..8 * 23 {
            let mut damaged = slot.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Plain::in_slot(&damaged).is_none_or(|item| !item.is_intact()), "bit {bit}");
        }
    }

    #[test]
    fn keys_of_any_length_are_distinguished() {
        for key_bytes in 1..40 {
            let key: Vec<u8> = (1..=key_bytes).collect();
            let header = Header::new(key.len(), 0, Expiry::NEVER, 0);
            let slot = [&header.to_bytes()[..], &key].concat();
            let item = Plain::of_key(&slot, &key).expect("an item");
            assert_eq!((item.key(), item.value(), item.item_bytes()), (&key[..], &[][..], slot.len() as u64));
            assert!(Plain::of_key(&slot, &key[1..]).is_none());
            for at in 0..key.len() {
                let mut other = key.clone();
                other[at] = 0;
                assert!(Plain::of_key(&slot, &other).is_none(), "{key_bytes} bytes, the one at {at}");
            }
        }
    }

    #[test]
    fn unknown_opcode_is_left_to_caller() {
        for slot in [&slot(Expiry::at_ms(1)), &slot(Expiry::NEVER)[..22], &[0; 15], &[]] {
            assert!(Plain::in_slot(slot).is_none() && Plain::of_key(slot, b"key").is_none());
        }
    }

    /// Flags are above the key's length: a key that is too long would overlap them.
    #[test]
    fn flags_are_no_part_of_a_length() {
        let key = vec![7; KEY_BYTES_MAX + 1 + 16];
        let lengths = (key.len() as u64) << 32;
        let slot = [&lengths.to_le_bytes()[..], &[0; 8], &key].concat();
        assert!(Plain::of_key(&slot, &key).is_none() && Plain::of_key(&slot, &key[..16]).is_none());
    }
}
