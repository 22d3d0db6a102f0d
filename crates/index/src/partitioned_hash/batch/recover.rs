//! Finishing the batches that a crash interrupted.
//!
//! PREPARED is taken back, COMMITTED carried out. Only entries that still have the mark are stored to, and they are
//! durable before the word is cleared: a crash in the midst of that leaves the same to the next opening. The word
//! is durable as it was read, since the region's head was flushed when the region was opened.

use std::sync::atomic::Ordering;

use heap::layout::BATCH_WORD_COUNT;
use heap::{BatchState, BatchWord, FEATURE_BATCHES, HeapError};
use pmem::{Dram, Medium};

use super::{Active, Batches, Change, finish, now, record};
use crate::canary;
use crate::partitioned_hash::Context;

/// Finishes every batch; where the medium is not writable, readers are shown what it comes to. The index is not in use.
///
/// # Errors
/// [`HeapError::Damaged`] if a batch's word or its record is damaged.
pub(in crate::partitioned_hash) fn recover<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    batches: &Batches,
) -> Result<(), HeapError> {
    if !cx.heap.has_features(FEATURE_BATCHES) {
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
            changes.iter().for_each(|change| replay(cx.medium, change));
        }
        finish(cx.medium, number, &changes, state, canary::RECOVERED_BATCH_FORGOTTEN_EARLY);
    }
    Ok(())
}

/// The broken twin that carries a change out whatever has become of the entry.
fn replay<M: Medium>(medium: &M, change: &Change) {
    let word = change.new.in_place_of(now(medium, change.at));
    medium.store(change.at, word.word(), Ordering::Release);
}
