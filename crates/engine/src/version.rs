//! Which value it was.

/// Which of a key's values was seen: equal only for equal values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version([u64; 2]);

impl Version {
    /// For engines: what tells a key's values apart, such as where a value lies and its checksum.
    #[inline(always)]
    #[must_use]
    pub const fn new(words: [u64; 2]) -> Version {
        Version(words)
    }

    /// For engines: what it was made of.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }
}
