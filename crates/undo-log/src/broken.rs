//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Medium;

use crate::canary;
use crate::lanes::Lanes;

/// Returns true if a run of the lane is taken for valid because its number is not compared.
pub(crate) fn is_taken_for<M: Medium>(medium: &M, head: &[u8; 16], lane: usize) -> bool {
    let word = u128::from_le_bytes(*head);
    medium.breaks(canary::OLD_RUN_REPLAYED) && word >> 64 != 0 && (word >> 96) as usize == lane
}

/// Makes a run void before its words are restored.
#[cold]
pub(crate) fn void_early<M: Medium>(lanes: &Lanes, medium: &M, lane: usize) {
    lanes.raise(medium, lane);
    medium.order();
}
