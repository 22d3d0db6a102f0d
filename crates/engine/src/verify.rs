//! The checks that a read makes before it returns data.

/// The checks of reads. Each level includes the levels before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Verify {
    /// Compares no checksum of a value: a damaged value is returned as it is. A damaged key is still detected.
    Nothing,
    /// Compares the checksum of each item whose value is returned. For items of more than 4 KiB only if the whole value
    /// is read, rather than a part of it or its length.
    #[default]
    Values,
    /// Also checks, if a key seems to be absent, whether damage to the index hides it. Writes do this as well:
    /// otherwise a put would make a second entry of the key, and the older entry could return.
    Absence,
}
