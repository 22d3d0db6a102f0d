//! Sealed words.

use std::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Medium, Offset, unseal};

use crate::layout::lane_word;

/// Returns the offset of a lane's newest segment, or null.
pub(super) fn newest<M: Medium>(medium: &M, lane: usize) -> Result<Offset, HeapError> {
    load_word(medium, lane_word(lane), "the word of a lane is damaged").map(Offset)
}

pub(super) fn load_word<M: Medium>(medium: &M, at: Offset, what: &'static str) -> Result<u64, HeapError> {
    unseal(medium.load(at, Ordering::Acquire)).ok_or(HeapError::Damaged { offset: at.0, what })
}
