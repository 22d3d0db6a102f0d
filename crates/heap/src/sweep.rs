//! The sweep: everything that nothing reaches is free.
//!
//! A newly opened heap has the chunks but not their live slots: they are *unswept*, and no space below the mark of
//! that moment is handed out. The caller walks the index and marks everything that it reaches, while stores and frees
//! continue; [`Sweep::finish`] frees everything else.
//!
//! # Concurrent operations
//! - New places are in chunks younger than the heap. These are never unswept and need no mark.
//! - A place is freed: the free is recorded and applied after the marks, so the place ends free whether it was marked
//!   before, after, or not at all.
//! - A free coincides with the end of the chunk's sweep: exactly one of both processes the record, whichever first
//!   exchanges the bitmap's word. The free reads the chunk's state again after making the record.
//!
//! # The caller's duty
//! The walk does not find a place that was removed from the index before the walk passed. The sweep would free this
//! place, and the [free](crate::Heap::free) after the last reader would free the place a second time, from its next
//! owner. So a thread that removes a place calls [`Sweep::mark_unlinked`] before the walk can have passed: in the
//! critical section that excludes the walk.

use core::sync::atomic::{AtomicBool, Ordering};

use pmem::{Dram, Medium, Offset};

use crate::chunks::Chunks;
use crate::layout::unit_start;
use crate::place::Place;
use crate::record::SlabRef;
use crate::runs::Run;
use crate::slot_kind::SlotKind;
use crate::table::{Entry, Tag};
use crate::{Class, InvalidPlace};

/// A place found by [`Sweep::expect_mark`].
pub struct Mark<'h>(Marked<'h>);

enum Marked<'h> {
    Slot(SlabRef, u32),
    Extent(&'h Entry),
}

impl Mark<'_> {
    /// Marks the place; the result is that of [`Sweep::mark_reached`].
    #[inline]
    pub fn set(self) -> bool {
        match self.0 {
            Marked::Slot(slab, slot) => !slab.is_unswept() || slab.claim_slot(slot),
            Marked::Extent(entry) => !entry.tag().has(Tag::UNSWEPT) || !entry.raise(Tag::REACHED).has(Tag::REACHED),
        }
    }
}

/// The progress of the sweep.
pub(crate) struct Progress {
    /// The mark at the time the heap was opened: chunks below it are unswept until the sweep ends.
    unswept_past: u32,
    is_ending: AtomicBool,
    is_swept: AtomicBool,
}

impl Progress {
    pub(crate) fn new(unswept_past: u32) -> Progress {
        Progress { unswept_past, is_ending: AtomicBool::new(false), is_swept: AtomicBool::new(false) }
    }

    #[inline(always)]
    pub(crate) fn is_swept(&self) -> bool {
        self.is_swept.load(Ordering::Acquire)
    }
}

/// The sweep of a heap.
pub struct Sweep<'h, D: Dram> {
    progress: &'h Progress,
    chunks: &'h Chunks<D>,
}

impl<'h, D: Dram> Sweep<'h, D> {
    #[inline(always)]
    pub(crate) fn of(progress: &'h Progress, chunks: &'h Chunks<D>) -> Sweep<'h, D> {
        Sweep { progress, chunks }
    }

    /// Calls `each` with every slot of every chunk of segments.
    pub fn segments(&self, each: &mut dyn FnMut(Offset)) {
        let geometry = SlotKind::SEGMENTS.geometry();
        self.chunks.table().each_chunk(self.chunks.supply().mark(), |unit, tag, _| {
            if tag.slot_kind() == Some((SlotKind::SEGMENTS, 0)) {
                (0..geometry.slot_count).for_each(|slot| each(unit_start(unit).plus(geometry.slot_start(slot))));
            }
        });
    }

    /// Marks `place` as reached from something durable. Returns false if it was already marked: two owners, which is
    /// damage. Always returns true for places younger than the heap, and after the sweep.
    ///
    /// # Errors
    /// [`InvalidPlace`] if the place is not valid: the reference to it is damaged.
    pub fn mark_reached(&self, place: Place) -> Result<bool, InvalidPlace> {
        Ok(self.mark_of(place)?.set())
    }

    /// Finds the place as [`Sweep::mark_reached`] does, and prefetches the line that [`Mark::set`] writes. A mark is a
    /// locked instruction, and no later read proceeds until its line has arrived; so a caller that makes several
    /// marks prefetches all their lines first.
    ///
    /// # Errors
    /// As for [`Sweep::mark_reached`].
    #[inline]
    pub fn expect_mark(&self, place: Place) -> Result<Mark<'h>, InvalidPlace> {
        let mark = self.mark_of(place)?;
        if let Mark(Marked::Slot(slab, slot)) = mark {
            slab.prefetch_claim(slot);
        }
        Ok(mark)
    }

    #[inline]
    fn mark_of(&self, place: Place) -> Result<Mark<'h>, InvalidPlace> {
        Ok(Mark(match place.kind.slot_kind() {
            Some(slot_kind) => {
                let (slab, slot) = self.chunks.table().slot(slot_kind, place.offset)?;
                Marked::Slot(slab, slot)
            }
            None => Marked::Extent(self.chunks.table().extent(place.offset)?),
        }))
    }

    /// Marks up to `count` unreached slots of the class and passes them to `each`: the caller owns them. All other
    /// marks must have been made, and the sweep must not have ended. No chunk has been freed by then, so this finds
    /// the slots of that class that the caller held before a crash without a durable reference to them.
    pub fn keep_unreached(&self, class: Class, count: u64, mut each: impl FnMut(Offset)) {
        let (slot_kind, mut left) = (SlotKind::of_class(class), count);
        self.each_unswept(|unit, tag, _| {
            let slab = if tag.slot_kind() == Some((slot_kind, 0)) { self.chunks.table().at(unit).slab() } else { None };
            let Some(slab) = slab.filter(|slab| slab.is_unswept()) else { return };
            let kept = (0..slab.geometry().slot_count).filter(|&slot| slab.claim_slot(slot)).take(left as usize);
            for slot in kept {
                each(unit_start(unit).plus(slab.geometry().slot_start(slot)));
                left -= 1;
            }
        });
    }

    /// Marks `place` as just removed from the index and to be freed later. Does nothing after the sweep, or if the
    /// place is not valid.
    #[inline]
    pub fn mark_unlinked(&self, place: Place) {
        if !self.progress.is_swept() {
            // False if the walk came by before; both results are fine.
            let _ = self.mark_reached(place);
        }
    }

    /// Frees everything that was not reached: slots, extents, and chunks without a live slot, which become free runs.
    /// Does nothing the second time, or on a read-only medium.
    ///
    /// Every mark must have been made, including those of removed places: see the head of this module.
    pub fn finish<M: Medium>(&self, medium: &M) {
        if !medium.is_writable() || self.progress.is_ending.swap(true, Ordering::AcqRel) {
            return;
        }
        self.each_unswept(|unit, tag, units| {
            self.sweep_chunk(medium, unit, tag, units);
            medium.yield_to_scheduler();
        });
        self.progress.is_swept.store(true, Ordering::Release);
    }

    fn sweep_chunk<M: Medium>(&self, medium: &M, unit: u32, tag: Tag, units: u32) {
        if tag.is_extent() {
            let before = self.chunks.table().at(unit).lower(Tag::UNSWEPT);
            if !before.has(Tag::REACHED) || before.has(Tag::RETIRED) {
                self.chunks.give_extent_back(medium, unit);
            }
        } else if tag.is_free() {
            let mut space = self.chunks.lock();
            self.chunks.table().at(unit).set(Tag::NOTHING, 0);
            self.chunks.give_run_back(medium, &mut space, Run { unit, units, space: Tag::HOLED.with(Tag::SPACED) });
        } else if let Some(slab) = self.chunks.table().at(unit).slab() {
            slab.end_sweep();
            self.chunks.disown(medium, slab);
        }
    }

    pub(crate) fn chunks(&self) -> &'h Chunks<D> {
        self.chunks
    }

    /// Calls `each` with every chunk that existed when the heap was opened.
    pub(crate) fn each_unswept(&self, each: impl FnMut(u32, Tag, u32)) {
        self.chunks.table().each_chunk(self.progress.unswept_past, each);
    }

    /// Ends the sweep, because all free space is known.
    pub(crate) fn end(&self) {
        self.progress.is_ending.store(true, Ordering::Release);
        self.progress.is_swept.store(true, Ordering::Release);
    }
}
