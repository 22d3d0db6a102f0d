//! The sweep: what nothing reaches is free.
//!
//! A heap that was opened knows the chunks and nothing of what is live in them: they are *unswept*, and no space below
//! the mark of that moment is handed out. The caller walks the index and marks what it reaches, while stores and frees go
//! on; [`Heap::finish_sweep`] frees the rest.
//!
//! # What may happen meanwhile
//! - New places lie in chunks younger than the heap. They are never unswept and need no mark.
//! - A place is freed: that is recorded, and applied after the marks, so the place ends free whether it was marked
//!   before, after, or not at all.
//! - A free meets the end of its chunk's sweep: the record is taken by exactly one of both, whichever exchanges the
//!   bitmap's word first; the free looks at the chunk's state again after leaving its record.
//!
//! # What the caller owes
//! The walk does not meet a place that was removed from the index before the walk came by, so the sweep would free this place, and
//! the [`Heap::free`] that comes when no reader is left would do so once more, from its next owner. So a thread that removes a
//! place calls [`Heap::mark_unlinked`] before the walk can have passed: in the critical section that keeps walk and removal apart.

use core::sync::atomic::Ordering;

use pmem::{Dram, Medium, Offset};

use crate::heap::Heap;
use crate::layout::{FIRST_CHUNK_UNIT, unit_start};
use crate::place::Place;
use crate::record::SlabRef;
use crate::runs::Run;
use crate::slot_kind::SlotKind;
use crate::table::{Entry, Tag};
use crate::{Class, InvalidPlace};

/// A place that [`Heap::expect_mark`] has found.
pub struct Mark<'h>(Marked<'h>);

enum Marked<'h> {
    Slot(SlabRef, u32),
    Extent(&'h Entry),
}

impl Mark<'_> {
    /// As [`Heap::mark_reached`] says.
    #[inline]
    pub fn set(self) -> bool {
        match self.0 {
            Marked::Slot(slab, slot) => !slab.is_unswept() || slab.claim_slot(slot),
            Marked::Extent(entry) => !entry.tag().has(Tag::UNSWEPT) || !entry.raise(Tag::REACHED).has(Tag::REACHED),
        }
    }
}

impl<D: Dram> Heap<D> {
    /// Calls `each` with every slot of every chunk of segments.
    pub fn segments(&self, each: &mut dyn FnMut(Offset)) {
        let geometry = SlotKind::SEGMENTS.geometry();
        self.each_chunk(self.figures.mark(), |unit, tag, _| {
            if tag.slot_kind() == Some((SlotKind::SEGMENTS, 0)) {
                (0..geometry.slot_count).for_each(|slot| each(unit_start(unit).plus(geometry.slot_start(slot))));
            }
        });
    }

    /// Tells the sweep that something durable refers to `place`. False if it was told so before: two owners, which is
    /// damage. Of places younger than the heap, and after the sweep, the answer is true.
    ///
    /// # Errors
    /// [`InvalidPlace`]: whatever names the place is damaged.
    pub fn mark_reached(&self, place: Place) -> Result<bool, InvalidPlace> {
        Ok(self.mark_of(place)?.set())
    }

    /// As [`Heap::mark_reached`], of which the last step is left to [`Mark::set`], and the cache is asked for what that writes. A mark is a locked
    /// instruction, behind which nothing is read before its line has come: so what several marks in a row write is asked for first.
    ///
    /// # Errors
    /// As for [`Heap::mark_reached`].
    #[inline]
    pub fn expect_mark(&self, place: Place) -> Result<Mark<'_>, InvalidPlace> {
        let mark = self.mark_of(place)?;
        if let Mark(Marked::Slot(slab, slot)) = mark {
            slab.prefetch_claim(slot);
        }
        Ok(mark)
    }

    #[inline]
    fn mark_of(&self, place: Place) -> Result<Mark<'_>, InvalidPlace> {
        Ok(Mark(match place.kind.slot_kind() {
            Some(slot_kind) => {
                let (slab, slot) = self.slot(slot_kind, place.offset)?;
                Marked::Slot(slab, slot)
            }
            None => Marked::Extent(self.extent(place.offset)?),
        }))
    }

    /// Marks up to `count` slots of the class that nothing has reached, and shows them: they are the caller's. All marks were made, and the sweep has not
    /// ended. As no chunk has been given back by then, this finds what the caller held of that class before a crash, where nothing durable told of that.
    pub fn keep_unreached(&self, class: Class, count: u64, mut each: impl FnMut(Offset)) {
        let (slot_kind, mut left) = (SlotKind::of_class(class), count);
        self.each_chunk(self.unswept_past, |unit, tag, _| {
            let slab = if tag.slot_kind() == Some((slot_kind, 0)) { self.table.at(unit).slab() } else { None };
            let Some(slab) = slab.filter(|slab| slab.is_unswept()) else { return };
            let kept = (0..slab.geometry().slot_count).filter(|&slot| slab.claim_slot(slot)).take(left as usize);
            for slot in kept {
                each(unit_start(unit).plus(slab.geometry().slot_start(slot)));
                left -= 1;
            }
        });
    }

    /// Tells the sweep that `place` was just removed from the index and will be freed later. Nothing after the sweep, or
    /// if it is no place.
    #[inline]
    pub fn mark_unlinked(&self, place: Place) {
        if !self.is_swept() {
            // False if the walk came by before; both is fine.
            let _ = self.mark_reached(place);
        }
    }

    /// Frees what was not reached: slots, extents, and chunks without a live slot, which become free runs. Does nothing
    /// the second time, or where nothing may be stored.
    ///
    /// Every mark must have been made, those of removed places included: see the head of this module.
    pub fn finish_sweep<M: Medium>(&self, medium: &M) {
        if !medium.is_writable() || self.is_sweep_ending.swap(true, Ordering::AcqRel) {
            return;
        }
        self.each_chunk(self.unswept_past, |unit, tag, units| {
            self.sweep_chunk(medium, unit, tag, units);
            medium.breathe();
        });
        self.is_swept.store(true, Ordering::Release);
    }

    /// True once all free space is known.
    #[inline(always)]
    pub fn is_swept(&self) -> bool {
        self.is_swept.load(Ordering::Acquire)
    }

    /// Calls `each` with the first unit, the tag and the length of each chunk below `past`, and with units of nothing
    /// one at a time where chunks are changing.
    pub(crate) fn each_chunk(&self, past: u32, mut each: impl FnMut(u32, Tag, u32)) {
        let mut unit = FIRST_CHUNK_UNIT;
        while unit < past {
            let (tag, units) = self.table.chunk(unit);
            each(unit, tag, units);
            unit += units;
        }
    }

    fn sweep_chunk<M: Medium>(&self, medium: &M, unit: u32, tag: Tag, units: u32) {
        if tag.is_extent() {
            let before = self.table.at(unit).lower(Tag::UNSWEPT);
            if !before.has(Tag::REACHED) || before.has(Tag::RETIRED) {
                self.give_extent_back(medium, unit);
            }
        } else if tag.is_free() {
            let mut space = self.space.lock();
            self.table.at(unit).set(Tag::NOTHING, 0);
            self.give_run_back(medium, &mut space, Run { unit, units, space: Tag::HOLED.with(Tag::SPACED) });
        } else if let Some(slab) = self.table.at(unit).slab() {
            slab.end_sweep();
            self.disown(medium, slab);
        }
    }
}
