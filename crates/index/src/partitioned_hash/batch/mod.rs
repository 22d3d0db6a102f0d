//! Batches change several entries as one step, for a crash and for readers
//! (`docs/decisions/0014-decide-a-batch-with-one-word.md`).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 0 before a store's first batch: its feature flag (`heap`: region) | the flag or not, and nothing else |
//! | 1 the caller writes and flushes the items | free space |
//! | 2 the pairs of all keys locked; each key looked up; free entries chosen | free space |
//! | 3a overflow bits, record flushed; ordered, with the items | free space; overflow bits may lead to free entries |
//! | 3b a batch word names the record: PREPARED; ordered | a batch that opening undoes: nothing |
//! | 4 all entries published with the mark BATCH; ordered | marked entries, which opening restores from the record |
//! | 5 the word becomes COMMITTED; committed, waited for | one of both words, so all of the batch or nothing |
//! | 6 the marks cleared, deleted entries emptied; ordered | a batch that opening completes |
//! | 7 the word becomes 0; ordered; the turn ends, the locks are released | the batch |
//! | 8 a log's batch is waited for | one of both words, or the later state |
//!
//! On a log, step 8 replaces the wait of step 5, so that no lock is held while a disk syncs. Step 6 then replaces
//! the mark BATCH by FRESH. As after any write, FRESH keeps readers from acting on a value that is not durable
//! (`ops`).
//!
//! The turn ends before step 8, so any number of batches share one sync, though no more than sixteen are between
//! steps 3b and 7. The next batch with the same word needs no wait either: on a log, its steps come after this batch's
//! 0. So a part of the log that survives has this batch's word, or 0, or the next batch's word, and never a mark
//! whose batch the word has already left. The same holds for the record's space, which is retired after the 0.
//!
//! If a log fails between steps 3b and 7, all parts of the batch stay: marks, word, and the entry of the table of
//! batches. If the word is PREPARED, readers find the old items. If it is COMMITTED, readers get the medium's
//! error, unless the word is durable. No later batch can begin.
//!
//! # Readers
//! A reader that finds the mark asks the batch ([`Batches`]). PREPARED means the old item. COMMITTED means the new
//! item, as soon as that word is durable. All marks are set before COMMITTED is, so a reader that has seen one
//! key's new value finds the new value of every other key also, with the mark or without it.
//!
//! A reader that sees a mark also sees the entry in the table of batches, because the entry was linked first. The
//! table entry, the old items and the record remain until no reader is pinned that can have seen the mark: all are
//! retired after the table entry was unlinked. So the word that a reader compares with cannot be that of a later
//! batch whose record is at the same place.
//!
//! If the word is neither PREPARED nor COMMITTED for this record, or the table has no such entry, the marks were
//! already cleared, and the reader loads the index entry again. An unchanged entry has a mark without a batch,
//! which is damage: readers use the entry as stored, and `check` reports the damage.
//!
//! # Other threads
//! Writers of single keys, splits, the sweep and `clear` hold a lock of each pair whose entries they change or
//! copy, and so find no mark. Opening finishes interrupted batches before any of these threads run (`recover.rs`),
//! and before the sweep. Nothing reaches the record then, so its space is free. During the batch's own process the
//! record is an allocation like any other.
//!
//! A writer that finds an overflow bit set, under the pair's lock, relies on the bit without a flush of its own. So
//! a writer that sets a bit orders the bit before releasing that lock. A batch that is abandoned has set no bit.
//!
//! # Lock order
//! 1. A turn (one of sixteen).
//! 2. All pairs, by partition, prefix and number. `clear` locks them in the same order.
//! 3. Stashes, by partition and prefix.
//!
//! A batch that waits for a turn, a split or a queue holds none of the locks.
//!
//! A segment may be split or cleared while a batch waits for its pairs. The batch then finds the segment dead,
//! releases that segment's pairs, and locks those of the segments that replaced it. In the lock order, these come
//! where the dead segment's pairs came, after all that are held. So a batch keeps its locks whatever is split at
//! the same time, and does not start over. A split holds the locks of one segment only, so it does not block a
//! batch that holds some of these locks and waits for a later segment's. No other thread can lock the halves until
//! the split is finished.

mod active;
mod chosen;
pub mod record;
mod recover;
mod turns;
mod write;

pub use active::{Batches, FinishedBatch};
pub use turns::Turn;
pub use write::{Batch, Finished, Full};

pub(super) use active::Active;
pub(super) use recover::recover;

use crate::canary;
use heap::{BatchState, BatchWord};
use pmem::{Canary, Medium, Offset};
use std::sync::atomic::Ordering;

use super::layout::slot_at;
use crate::Position;
use crate::partitioned_hash::Slot;

/// The change that a batch makes to one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The place of the entry's position word.
    pub(super) at: Offset,
    /// The number of its signature among the batch's signatures.
    number: u32,
    /// The caller's identifier for the change.
    pub by: u32,
    /// The item before, empty if the entry was free.
    pub old: Position,
    /// The item after, empty if the key is deleted.
    pub new: Position,
}

impl Change {
    /// Returns the entry.
    #[inline(always)]
    pub(super) fn slot(&self) -> Slot {
        slot_at(self.at)
    }

    /// Returns the word while the batch is undecided.
    fn marked(&self) -> Position {
        if self.new.is_empty() { self.old.deleted().in_batch() } else { self.new.in_batch() }
    }

    /// Returns the final word.
    pub(super) fn outcome(&self, state: BatchState) -> Position {
        match state {
            BatchState::Prepared => self.old,
            BatchState::Committed => self.new,
        }
    }
}

fn now<M: Medium>(medium: &M, at: Offset) -> Position {
    Position::from_word(medium.load(at, Ordering::Acquire))
}

/// Carries out steps 6 and 7 for batch word `number`, except for the locks. It stores only to entries that still
/// have the mark, but flushes all, because an earlier process may have died between a store and its flush.
fn finish<M: Medium>(medium: &M, number: usize, changes: &[Change], state: BatchState, early: Canary) {
    for change in changes {
        let seen = now(medium, change.at);
        if seen.is_in_batch() {
            let word = change.outcome(state).in_place_of(seen);
            medium.store(change.at, word.word(), Ordering::Release);
        }
        medium.flush(change.at.span(8));
    }
    medium.order_unless(early);
    if !medium.breaks(canary::BATCH_REPLAYED) {
        BatchWord::clear(medium, number);
        medium.order();
    }
}
