//! Passwords, stored as SHA-256 and compared in constant time.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The hash of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn of(password: &[u8]) -> Hash {
        Hash(Sha256::digest(password).into())
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Hash> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Hash(hash))
    }

    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, other: &Hash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a random password of `digit_count` hexadecimal digits; `None` if the system provides no randomness.
pub fn random_hex(digit_count: usize) -> Option<String> {
    let mut bytes = vec![0; digit_count.div_ceil(2)];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).ok()?;
    }
    let mut text = hex(&bytes);
    text.truncate(digit_count);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_sha256() {
        let hash = Hash::of(b"abc");
        assert_eq!(hash.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(Hash::from_hex(hash.hex().as_bytes()).is_some_and(|read| read.is(&hash)));
        assert!(!Hash::of(b"abd").is(&hash));
        assert!(Hash::from_hex(b"xyz").is_none() && Hash::from_hex(&[b'g'; 64]).is_none());
        assert_eq!(random_hex(5).map(|text| text.len()), Some(5));
    }
}
