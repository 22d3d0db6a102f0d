//! A key of the cached table.

/// A key, and its signature.
#[derive(Clone, Copy, Debug)]
pub struct LookupKey<'a> {
    /// The bytes of the key.
    pub bytes: &'a [u8],
    /// The signature of the key.
    pub signature: u64,
}
