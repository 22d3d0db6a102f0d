//! Finds one entry for readers, without a lock (`search`).
//!
//! # Why an absence can be trusted
//! A reader that finds nothing has not acquired anything yet: all signatures of a line are compared in one sweep,
//! without Acquire. The reader therefore issues an acquire fence before it reports the absence. Whatever the caller
//! reads next is then not older than the slots that did not hold the key. For this, writers store signatures with
//! Release.
//!
//! A reader searches the segment that the directory names, once. A key that is present occupies one slot of one
//! segment: replacing, settling or moving the key's item does not change the slot, and overflow bits are never
//! cleared. So a search of the segment misses the key only if the key was absent at some moment of the search, even
//! if only between a removal and a new insert into a slot that had been searched already.
//!
//! The segment may be out of date: three words lead to it (root, directory, offset), and each may be replaced
//! between two of these loads. Three rules make this harmless:
//! - A replaced root, directory or segment does not change any more: `clear`, doubling a directory, and a split
//!   hold the locks of all writers that could change it. The reader's pin prevents the reuse of its memory. So the
//!   reader sees the state of the moment at which the first of the three was replaced. If that moment is after the
//!   reader's call began, the answer was correct at that moment. If it is before, the next rule applies.
//! - Readers are directed to a new structure before any writer can reach it (`directory`; for a root, one word
//!   directs both). So a reader that is directed to a frozen segment sees everything written before its call began.
//! - A split holds all locks and copies every live entry. This includes entries of batches, because the split
//!   waited for their pairs. Only a removal leaves no copy. Chains only grow, and a new chained segment is empty
//!   when it is linked.

use pmem::{Medium, MediumError};

use super::PartitionedHash;
use super::absence::{self, Absence};
use super::search::{Searcher, find_entry};
use crate::Position;
use crate::canary;

impl PartitionedHash {
    /// Passes the live positions that have `signature` to `visit`, until it returns a value.
    ///
    /// The caller is pinned from before this call until its last use of the positions.
    #[inline(always)]
    pub fn find<M: Medium, R, E: From<MediumError>>(
        &self,
        medium: &M,
        signature: u64,
        mut visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<R>, E> {
        let segment = self.segments.offset(signature);
        if let Some(found) = find_entry(medium, Searcher::reader(&self.batches), segment, signature, &mut visit)? {
            return Ok(Some(found.value));
        }
        medium.check_lost_ranges()?;
        if !medium.breaks(canary::MISS_NOT_FENCED) {
            medium.acquire();
        }
        Ok(None)
    }
    /// Verifies an absence of `signature` that [`PartitionedHash::find`] reported. `is_of_key` returns whether the
    /// item at a position belongs to the key; the position may be any word. The caller has been pinned since before
    /// its search.
    #[cold]
    #[inline(never)]
    pub fn absence<M: Medium>(&self, medium: &M, signature: u64, is_of_key: impl FnMut(Position) -> bool) -> Absence {
        let segment = self.segments.offset(signature);
        let seen = absence::verdict(medium, segment, signature, is_of_key);
        if self.segments.offset(signature) == segment { seen } else { Absence::Stale }
    }
}
