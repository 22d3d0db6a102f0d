//! Keys of 16 bytes, as two words that compare as the bytes do.

/// The bytes of a key.
pub type KeyBytes = [u8; 16];

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key(u128);

impl Key {
    /// The greatest key.
    pub(crate) const LAST: Key = Key(u128::MAX);

    pub(crate) fn of(bytes: &KeyBytes) -> Key {
        Key(u128::from_be_bytes(*bytes))
    }

    pub(crate) fn bytes(self) -> KeyBytes {
        self.0.to_be_bytes()
    }

    #[inline(always)]
    pub(crate) fn of_words([high, low]: [u64; 2]) -> Key {
        Key(u128::from(high) << 64 | u128::from(low))
    }

    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 2] {
        [(self.0 >> 64) as u64, self.0 as u64]
    }

    /// Returns the next greater key, if there is one.
    pub(crate) fn next(self) -> Option<Key> {
        self.0.checked_add(1).map(Key)
    }
}
