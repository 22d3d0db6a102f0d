//! Versions of values (`docs/decisions/0015-compare-versions-under-the-locks.md`).

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::Expiry;

/// The key of the hash in versions. It is drawn for each process and never leaves it.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The bit of a witness' second word that marks the words as sufficient without a hash.
const EXACT: u64 = 1 << 63;

/// Bits of the expiry next to the checksum.
const EXPIRY_BITS: u64 = (1 << 31) - 1;

/// An identifier of a value of a key and its expiry. Two versions are equal only if value and expiry are equal, for any
/// values that a client chooses. A version is valid only in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version([u64; 2]);

impl Version {
    /// For engines and their tests: returns the version of these words.
    #[inline(always)]
    #[must_use]
    pub const fn new(words: [u64; 2]) -> Version {
        Version(words)
    }

    /// Returns the words, for bindings that pass a version through another language.
    #[inline(always)]
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }
}

/// The place, checksum and expiry of a value that was read. Unlike a version, the same witness may stand for another
/// value later: if the key gets its old place again and the checksums collide, which a client that chooses values can
/// cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness([u64; 2]);

impl Witness {
    /// Returns the witness of an item at a place, with a checksum (CRC-32C) of its whole content. If two items have
    /// equal values, equal checksums and the same lower bits of their expiries, the expiries are equal: a checksum
    /// detects every difference within 32 bits.
    #[inline(always)]
    #[must_use]
    pub const fn of_item(place: u64, checksum: u32, expiry: Expiry) -> Witness {
        Witness([place, checksum as u64 | (expiry.ms() & EXPIRY_BITS) << 32])
    }

    /// Returns the witness of words that never stand for two values of a key, such as a stamp that does not return.
    /// Sets the highest bit of the second word.
    #[inline(always)]
    #[must_use]
    pub const fn exact([first, second]: [u64; 2]) -> Witness {
        Witness([first, second | EXACT])
    }

    /// For engines: returns the words from which [`Witness::of_words`] makes this witness again.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }

    /// Returns the witness of these words.
    #[inline(always)]
    #[must_use]
    pub const fn of_words(words: [u64; 2]) -> Witness {
        Witness(words)
    }

    /// Returns the version of the value that was read. Hashes the value unless the witness is exact.
    #[must_use]
    pub fn version(self, key: &[u8], value: &[u8]) -> Version {
        let [place, rest] = self.0;
        self.exact_version().unwrap_or_else(|| Version([place, SECRET.hash_one((rest, key, value))]))
    }

    /// Returns the version if it needs no hash.
    #[must_use]
    pub fn exact_version(self) -> Option<Version> {
        (self.0[1] & EXACT != 0).then_some(Version(self.0))
    }

    /// Returns true if `asked` is the version of the value that was read. Hashes the value only if the place is the
    /// same.
    #[must_use]
    pub fn is_of(self, asked: Version, key: &[u8], value: &[u8]) -> bool {
        self.0[0] == asked.0[0] && self.version(key, value) == asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: u64 = 0x7000;

    #[test]
    fn versions_differ_by_each_component() {
        let never = Witness::of_item(PLACE, 7, Expiry::NEVER);
        let version = never.version(b"key", b"value");
        assert_eq!(never.version(b"key", b"value"), version);
        assert!(never.is_of(version, b"key", b"value"));
        assert_ne!(never.version(b"key", b"walue"), version, "the checksums collide");
        assert_ne!(never.version(b"keyv", b"alue"), version);
        assert_ne!(Witness::of_item(PLACE + 16, 7, Expiry::NEVER).version(b"key", b"value"), version);
        assert_ne!(Witness::of_item(PLACE, 7, Expiry::at_ms(5)).version(b"key", b"value"), version);
        assert_ne!(Witness::of_item(PLACE, 8, Expiry::NEVER).version(b"key", b"value"), version);
    }

    #[test]
    fn exact_words_are_versions() {
        let [one, two] = [1, 2].map(|stamp| Witness::exact([stamp, 0]));
        assert_eq!(one.version(b"key", b"value"), one.version(b"key", b"another"));
        assert_ne!(one.version(b"key", b"value"), two.version(b"key", b"value"));
    }
}
