//! The segments of a hash index: the directories that lead to them, the locks of the partitions, and the steps that
//! are the same in every index's splits and walks.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use heap::HeapError;
use parking_lot::{Mutex, MutexGuard};
use pmem::{Dram, Medium, Offset, seal};

use super::directory::{Retired, Root};
use super::layout::{Geometry, NEXT_BYTES, SegmentHeader, State};
use super::{Context, Cursor, Garbage, Segmented, Table, clear};
use crate::shared::Pointer;

/// The segments of an index. The caller of a method is pinned while it uses a segment.
#[derive(Debug)]
pub(crate) struct Segments<S> {
    geometry: Geometry,
    root: Pointer<Root<S>>,
    partitions: Box<[Mutex<()>]>,
}

impl<S: Segmented> Segments<S> {
    pub(crate) fn new(geometry: Geometry, root: Box<Root<S>>) -> Segments<S> {
        Segments {
            geometry,
            root: Pointer::new(Box::into_raw(root)),
            partitions: (0..geometry.partition_count()).map(|_| Mutex::new(())).collect(),
        }
    }

    #[inline(always)]
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the current root.
    #[inline(always)]
    pub(crate) fn root(&self) -> &Root<S> {
        // SAFETY: the root is never null; a replaced root is retired, and the caller is pinned.
        unsafe { &*self.root.load(Ordering::Acquire) }
    }

    /// Returns the segment that a writer of `signature` locks.
    #[inline(always)]
    pub(crate) fn of(&self, signature: u64) -> &S {
        self.root().segment(self.geometry, signature)
    }

    /// Returns the offset of the segment that a reader of `signature` searches.
    #[inline(always)]
    pub(crate) fn offset(&self, signature: u64) -> Offset {
        self.root().offset(self.geometry, signature)
    }

    /// Returns the offset that a reader of `signature` searches, and the segment that a writer locks.
    #[inline(always)]
    pub(crate) fn both(&self, signature: u64) -> (Offset, &S) {
        self.root().both(self.geometry, signature)
    }

    /// Returns true if `signature` belongs to the segment, which is that of `first`.
    pub(crate) fn is_in(&self, segment: &S, first: u64, signature: u64) -> bool {
        self.geometry.partition(signature) == self.geometry.partition(first)
            && self.geometry.prefix(signature, segment.depth()) == segment.prefix()
    }

    /// Returns the number of live segments, without chained ones.
    pub(crate) fn count(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().count() as u64
    }

    /// Returns the DRAM used by directories and segment tables.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().dram_bytes()
    }

    /// Locks a partition: no other thread splits its segments.
    pub(crate) fn lock_partition(&self, partition: usize) -> MutexGuard<'_, ()> {
        self.partitions[partition].lock()
    }

    /// Returns true while another thread, or this one, holds the partition's lock.
    #[cfg(test)]
    pub(crate) fn is_partition_locked(&self, partition: usize) -> bool {
        self.partitions[partition].is_locked()
    }

    /// Returns false if the cursor of a walk is beyond the last partition, which is possible with an invented number.
    pub(crate) fn has(&self, cursor: Cursor) -> bool {
        cursor.partition < self.geometry.partition_count()
    }

    /// Returns the segment at the cursor of a walk.
    pub(crate) fn at(&self, cursor: Cursor) -> &S {
        self.root().at_cursor(cursor)
    }

    /// Returns the cursor behind `segment`.
    pub(crate) fn past(&self, cursor: Cursor, segment: &S) -> Cursor {
        cursor.past(segment, self.geometry.partition_count())
    }

    /// Returns the signatures covered by the step of a walk from `cursor` to `next`.
    pub(crate) fn signatures(&self, cursor: Cursor, next: Cursor) -> RangeInclusive<u64> {
        let start = |cursor: Cursor| self.geometry.signature(cursor.partition as u64, cursor.prefix);
        let last = if next.done { u64::MAX } else { start(next) - 1 };
        start(cursor)..=last
    }

    /// Returns true if a walk that has returned this cursor has visited the segment of `signature`.
    pub(crate) fn has_passed(&self, cursor: Cursor, signature: u64) -> bool {
        cursor.done || signature < self.geometry.signature(cursor.partition as u64, cursor.prefix)
    }

    /// Carries out step 6 of a split, except for the release of the locks. The caller holds those of the partition
    /// and of the old segment. `is_late` is explained at [`Root::put_halves`].
    pub(crate) fn switch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        old: &S,
        partition: usize,
        halves: [Box<S>; 2],
        is_late: bool,
    ) {
        let places: Vec<_> = old.places(cx.medium).collect();
        let table = self.root().put_halves(cx, partition, old, halves, is_late);
        old.kill();
        // The table is retired last: the caller still holds its locks, and is pinned.
        for place in places {
            // The sweep, which the partition's lock keeps out, will not reach the segment any more.
            cx.heap.sweep().mark_unlinked(place);
            cx.retire(Garbage::of(place));
        }
        cx.retire(Garbage::Table(Table::new(table)));
    }

    /// Removes everything ([`clear`]), with `empty` for the new segments, and returns the unlinked root.
    ///
    /// # Errors
    /// Returns the error of `empty`, after which nothing has changed, or that of the medium.
    pub(crate) fn clear<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        empty: impl FnOnce(u16) -> Result<Box<Root<S>>, HeapError>,
    ) -> Result<Retired<Root<S>>, HeapError> {
        clear::clear(cx, &self.partitions, &self.root, empty)
    }
}

impl<S> Drop for Segments<S> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and no other thread uses the index any more.
        drop(unsafe { Box::from_raw(*self.root.get_mut()) });
    }
}

/// Returns the header of the half of `parent` whose signatures have `bit` next.
pub(crate) fn child<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    parent: &impl Segmented,
    partition: usize,
    bit: u64,
) -> SegmentHeader {
    SegmentHeader {
        state: State::Pending,
        partition: partition as u32,
        depth: parent.depth() + 1,
        prefix: parent.prefix() << 1 | bit,
        generation: cx.heap.region().generation(),
    }
}

/// Links `added`, which is CHAINED and was flushed, to the end of the segment's chain: its bytes are ordered before the
/// chain word of the last segment, and that word before the return.
pub(crate) fn append<M: Medium>(medium: &M, segment: &impl Segmented, added: Offset) {
    medium.order();
    let last = segment.chain(medium).last().expect("a chain begins with the segment itself").plus(NEXT_BYTES);
    medium.store(last, seal(added.0), Ordering::Release);
    medium.flush(last.span(8));
    medium.order();
}
