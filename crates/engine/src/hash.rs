//! The hash of keys.
//!
//! Signatures are persisted, so the definition of the hash is part of the format. It is rapidhash V3, whose crate
//! promises a stable output. It is keyed with secrets from the store's seed, because clients choose keys. The tests
//! compare it with known answers. See
//! `docs/decisions/0006-hash-with-seeded-rapidhash-and-checksum-with-our-own-crc-32c.md` and `0007-a-seeded-hash.md`.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// The keyed hash of one store.
#[derive(Clone, Debug)]
pub struct Hasher(RapidSecrets);

impl Hasher {
    /// Returns the hash of a store with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Hasher {
        Hasher(RapidSecrets::seed(seed))
    }

    /// Returns the signature of `key`.
    #[inline(always)]
    #[must_use]
    pub fn signature(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, false, false>(key, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let long: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let hasher = Hasher::new(0x5EED);
        let answers = [&b""[..], b"a", b"0123456789abcdef", &long].map(|key| hasher.signature(key));
        assert_eq!(answers, KNOWN);
        assert_ne!(Hasher::new(1).signature(b"a"), Hasher::new(2).signature(b"a"));
    }

    const KNOWN: [u64; 4] = [4951591844479559172, 168561307621390020, 15858749570392682199, 7679006305464702921];
}
