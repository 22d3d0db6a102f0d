//! Finishes the batches that a crash interrupted.
//!
//! PREPARED batches are undone, COMMITTED batches are carried out. Only entries that still have the mark are stored
//! to, and they are durable before the word is cleared. So a crash during recovery leaves the same work to the next
//! open. The word that was read is durable, because opening flushes the region's head first.

use heap::layout::BATCH_WORD_COUNT;
use heap::{BatchState, BatchWord, FEATURE_BATCHES, HeapError};
use pmem::{Dram, Medium};

use super::{Active, Batches, finish, record};
use crate::canary;
use crate::partitioned_hash::{Context, broken};

/// Finishes every batch. If the medium is not writable, links the batches instead, so that readers get their
/// outcome. The index is not in use yet.
///
/// # Errors
/// [`HeapError::Damaged`] if a batch's word or its record is damaged.
pub(in crate::partitioned_hash) fn recover<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    batches: &Batches,
) -> Result<(), HeapError> {
    if !cx.heap.region().has_features(FEATURE_BATCHES) {
        return Ok(());
    }
    for number in 0..BATCH_WORD_COUNT {
        let Some(BatchWord { record, state }) = BatchWord::load(cx.medium, number)? else { continue };
        let changes = record::read(cx.medium, record)?;
        if !cx.medium.is_writable() {
            batches.link(Active::new(number, record, &changes));
            continue;
        }
        if cx.medium.breaks(canary::BATCH_REPLAYED) && state == BatchState::Committed {
            broken::replay(cx.medium, &changes);
        }
        finish(cx.medium, number, &changes, state, canary::RECOVERED_BATCH_FORGOTTEN_EARLY);
    }
    Ok(())
}
