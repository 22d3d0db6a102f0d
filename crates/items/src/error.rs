//! The errors of items.

use core::fmt;

use pmem::MediumError;

/// The reason why an item could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemError {
    /// The medium failed, or the item would extend beyond it.
    Medium(MediumError),
    /// The item's bytes contradict themselves.
    Damaged {
        /// The offset of the damage in the region.
        offset: u64,
        /// A description of the damage.
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
