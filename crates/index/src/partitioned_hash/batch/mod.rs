//! Batches: several entries changed as one step, for a crash and for readers alike (`docs/decisions/0014-decide-a-batch-with-one-word.md`).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 0 before a store's first batch: its feature flag (`heap`: region) | the flag or not, and nothing else |
//! | 1 the items, written and flushed by the caller | free space |
//! | 2 the pairs of all keys locked; each looked for; free entries chosen | free space |
//! | 3a overflow bits, flushed; the record, flushed; ordered, with items and bits | the same, and perhaps the bits: searches look further, find nothing |
//! | 3b a batch word names it: PREPARED; ordered | a batch that opening takes back: nothing |
//! | 4 every entry published with the mark BATCH; ordered | some entries marked: opening puts what the record says was there in their place |
//! | 5 the word says COMMITTED; committed, waited for | one of both words, so all of the batch or nothing |
//! | 6 the marks taken away, deleted entries emptied; ordered | a batch that opening completes |
//! | 7 the word is 0, ordered; the locks are released | the batch |
//! | 8 a log's batch is waited for | one of both words, or what followed |
//!
//! On a log 8 stands for the wait of 5: no lock is held while a disk syncs. Step 6 then puts FRESH in the mark's place, which
//! keeps readers from acting on what is not durable as it does after any write (`ops`).
//!
//! Where a log fails between 3b and 7, all of the batch stays: marks, word and the entry of the table. If the word says PREPARED,
//! readers find the old items. If the word says COMMITTED, readers get the medium's error, unless the word is durable. No later batch is begun.
//!
//! # Readers
//! A reader that meets the mark asks the batch ([`Batches`]): PREPARED means the old item, COMMITTED the new one, once that word is
//! durable. All marks are there before COMMITTED is, so a reader that has seen one key new finds every other new: by the mark, or
//! without it.
//!
//! A reader that sees a mark sees the table's entry, since it was linked before. The entry stays, and so do the old items and the
//! record, until no reader is pinned that can have seen it: all are retired after the entry was unlinked. So the word that a
//! reader compares with cannot be that of a later batch whose record lies at the same place. Where the word is neither, or the
//! table has no such entry, the marks were taken away before: the reader loads the entry again. An entry that is the same then is
//! marked without a batch, which is damage: the entry is read as it stands, and `check` tells.
//!
//! # Other threads
//! Writers of single keys, splits, the sweep and `clear` hold a lock of each pair whose entries they change or copy, and
//! so meet no mark. What opening finds is finished before any of them runs (`recover.rs`), and before the sweep: the
//! record is then reached by nothing, and free. In this process it is an allocation as any other.
//!
//! A writer that finds an overflow bit set under the pair's lock relies on the bit without a flush of its own. So a writer that
//! sets a bit orders it before letting that lock go: a batch that is given up has set none.
//!
//! # Lock order
//! A turn (one of sixteen); then all pairs, by partition, prefix and number: the order in which `clear` takes them. Then
//! stashes, by partition and prefix. A batch that waits for a turn, a split or a queue holds none of the locks.
//!
//! A segment may be split or cleared while a batch waits for its pairs. The batch then finds the segment dead, lets that one's
//! pairs go, and locks those of the segments that took its place: in the order of locks these come where the dead one's did, after
//! all that is held. So a batch keeps what it has locked, whatever is split meanwhile, and is not driven back to the beginning. A
//! split takes the locks of one segment alone, and so hinders no batch that holds some of them and waits for a later segment's; no
//! other thread can lock the halves until the split is over.

mod active;
mod chosen;
pub mod record;
mod recover;
mod turns;
mod write;

pub use active::Batches;
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

/// What a batch does to one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The entry's position word.
    pub(super) at: Offset,
    /// The number of its signature among the batch's.
    number: u32,
    /// What the caller knows it by.
    pub by: u32,
    /// The item before, empty if the entry was free.
    pub old: Position,
    /// The item after, empty if the key is deleted.
    pub new: Position,
}

impl Change {
    /// The entry.
    #[inline(always)]
    pub(super) fn slot(&self) -> Slot {
        slot_at(self.at)
    }

    /// The word while the batch decides.
    fn marked(&self) -> Position {
        if self.new.is_empty() { self.old.deleted().in_batch() } else { self.new.in_batch() }
    }

    /// The word in the end.
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

/// Steps 6 and 7, for batch word `number`, but for the locks. Only what still has the mark is stored to; all is flushed,
/// since an earlier process may have died between a store and its flush.
fn finish<M: Medium>(medium: &M, number: usize, changes: &[Change], state: BatchState, early: Canary) {
    for change in changes {
        let seen = now(medium, change.at);
        if seen.is_in_batch() {
            let word = change.outcome(state).in_place_of(seen);
            medium.store(change.at, word.word(), Ordering::Release);
        }
        medium.flush(change.at.span(8));
    }
    if !medium.breaks(early) {
        medium.order();
    }
    if !medium.breaks(canary::BATCH_REPLAYED) {
        BatchWord::clear(medium, number);
        medium.order();
    }
}
