//! Finds keys, without a lock: one optimistic attempt, then a search that is repeated until it is steady.

use std::hint;
use std::ops::ControlFlow;

use pmem::{Medium, MediumError, Offset};

use super::lookup::Lookup;
use super::read::OptimisticRead;
use super::slot::Key;
use super::{BlockHash, Slot};
use crate::Position;
use crate::segmented::directory::DirectoryVersion;

/// The result of a lookup, for a caller that checks later whether it still counts.
pub struct Candidate<'a, M> {
    read: OptimisticRead<'a, M>,
    lookup: Lookup,
    led: DirectoryVersion,
}

impl<M: Medium> Candidate<'_, M> {
    /// Returns the position of the item that the slot names, if it names one, to be prefetched.
    #[inline(always)]
    pub fn position(&self) -> Option<Position> {
        match self.lookup {
            Lookup::Item(position) => Some(position),
            _ => None,
        }
    }
}

impl BlockHash {
    /// Returns the slot of the key. `is_key` returns whether the item at a position has the key; its signature is
    /// equal. The caller is pinned while it uses the position.
    ///
    /// # Errors
    /// Returns the error of `is_key` or of the medium.
    #[inline(always)]
    pub fn find<M: Medium, E: From<MediumError>>(
        &self,
        medium: &M,
        key: Key<'_>,
        mut is_key: impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<Slot>, E> {
        if let Some(found) = self.read(medium, key.signature).try_find(key, &mut is_key)? {
            return Ok(found);
        }
        loop {
            match self.read(medium, key.signature).find(key, &mut is_key)? {
                ControlFlow::Break(found) => return Ok(found),
                ControlFlow::Continue(()) => hint::spin_loop(),
            }
        }
    }

    /// Looks up a key ahead of [`BlockHash::lookup_candidate`].
    #[inline(always)]
    pub fn candidate<'a, M: Medium>(&'a self, medium: &'a M, key: Key<'_>) -> Candidate<'a, M> {
        let led = self.segments.root().led();
        let read = self.read(medium, key.signature);
        let lookup = read.lookup(key, || true);
        Candidate { read, lookup, led }
    }

    /// Like [`BlockHash::lookup`], with a candidate of the same key. If the buckets have not changed and readers
    /// are still directed to them, another lookup would have the same result.
    #[inline(always)]
    pub fn lookup_candidate<M: Medium>(&self, candidate: &Candidate<'_, M>, key: Key<'_>) -> Lookup {
        let is_same = candidate.read.is_steady() && self.segments.root().led() == candidate.led;
        if is_same { candidate.lookup } else { self.lookup(candidate.read.medium, key) }
    }

    /// Looks up a key. The caller is pinned as for [`BlockHash::find`], which it calls if the result is `Unsure`.
    #[inline(always)]
    pub fn lookup<M: Medium>(&self, medium: &M, key: Key<'_>) -> Lookup {
        let read = self.read(medium, key.signature);
        read.lookup(key, || read.is_steady())
    }

    /// Returns a bucket of the signature that has a damaged slot, which might hold a key that was not found. The
    /// caller is pinned.
    pub fn damaged_bucket<M: Medium>(&self, medium: &M, signature: u64) -> Option<Offset> {
        loop {
            match self.read(medium, signature).damaged_bucket() {
                ControlFlow::Break(damaged) => return damaged,
                ControlFlow::Continue(()) => hint::spin_loop(),
            }
        }
    }

    #[inline(always)]
    fn read<'a, M: Medium>(&'a self, medium: &'a M, signature: u64) -> OptimisticRead<'a, M> {
        OptimisticRead::begin(&self.segments, &self.batches, medium, signature)
    }
}
