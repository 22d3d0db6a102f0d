//! What speaks against an item.

use core::fmt;

use pmem::MediumError;

/// Why an item could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemError {
    /// The medium failed, or the item would lie outside of it.
    Medium(MediumError),
    /// The item's bytes contradict themselves.
    Damaged {
        /// Where, as an offset into the region.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemError::Medium(error) => error.fmt(f),
            ItemError::Damaged { offset, what } => write!(f, "the store is damaged at offset {offset:#x}: {what}"),
        }
    }
}

impl core::error::Error for ItemError {}

impl From<MediumError> for ItemError {
    fn from(error: MediumError) -> ItemError {
        ItemError::Medium(error)
    }
}
