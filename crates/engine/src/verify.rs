//! What is compared before a read believes it.

/// What reads compare. Each level has those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Verify {
    /// No value's checksum: a damaged value is given as it is. A damaged key is noticed nevertheless.
    Nothing,
    /// The checksum of each item whose value is shown; of more than 4 KiB only where the whole value is read, rather than a
    /// part of it or its length.
    #[default]
    Values,
    /// Also, where a key seems to be absent, whether damage to the index hides it. Writes look, too: a put would make a second
    /// entry of the key, and the older one could come back.
    Absence,
}
