//! A pass carries out one plan in bounded steps.

use std::thread;

use heap::{Class, Place, PlaceKind, Reservation};
use pmem::Offset;

use super::plan::{Plan, Thoroughness};
use super::{CompactionReport, Compacts, Pass, Stage};
use crate::Error;

/// The number of waits for readers that keep retired items. Items that they keep for longer become free later.
const READER_WAITS_MAX: u32 = 1000;

/// The result of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// The index names the copy of an item.
    Done {
        /// The item's bytes.
        item_bytes: u64,
    },
    /// Another thread wrote the key first.
    Unexpected,
    /// The checksum of the item at this offset does not match; the item stays.
    Damaged {
        /// The offset.
        offset: u64,
    },
    /// There is no slot for the copy.
    NoSpace,
}

impl<C: Default> Pass<C> {
    /// Adds the result of a move to the report.
    pub fn note<E: Compacts<Cursor = C> + ?Sized>(&mut self, engine: &E, moved: Moved) {
        match moved {
            Moved::Done { item_bytes } => {
                self.report.moved_items += 1;
                self.report.moved_bytes += item_bytes;
                engine.compaction().note_moved(item_bytes);
            }
            Moved::Unexpected => {}
            Moved::Damaged { offset } => self.report.damaged.push(offset),
            Moved::NoSpace => self.report.left_items += 1,
        }
    }

    /// Reserves a slot of the class: in the gaps of fuller chunks, or anywhere if other threads have filled those.
    ///
    /// # Errors
    /// Those of [`heap::Heap::reserve_slots`]; `None` if the region is full.
    pub fn slot<'e, E: Compacts<Cursor = C> + ?Sized>(
        &mut self,
        engine: &'e E,
        class: Class,
    ) -> Result<Option<Reservation<'e, E::Dram>>, Error> {
        let (heap, medium) = (engine.heap(), engine.medium());
        loop {
            if let Some(slot) = heap.evacuation().reserve_to_move(class) {
                return Ok(Some(slot));
            }
            let Some(chunk) = self.plan.next_to_fill(class) else { break };
            // If another thread has taken this chunk, the loop tries the next.
            let _ = heap.evacuation().fill(medium, chunk);
        }
        // Only a slot of the same class: an extent, or a slot of a larger class, takes more space than becomes free.
        let mut offsets = [Offset::NULL];
        match heap.reserve_slots(medium, class, epoch::thread_index(), &mut offsets).map_err(Error::from) {
            Err(error) if error.is_full() => Ok(None),
            reserved => reserved.map(|_| Some(heap.hold(Place { offset: offsets[0], kind: PlaceKind::Slot(class) }))),
        }
    }

    /// Returns an upper bound of the bytes that the pass moves.
    pub(super) fn moved_bytes_total(&self) -> u64 {
        self.moved_bytes_total
    }

    /// Returns the report of the pass so far.
    pub(super) fn report(&self) -> &CompactionReport {
        &self.report
    }

    /// Returns a pass, if it can gain `gain_bytes_min`. Threads give up their chunks for it: each keeps one chunk per
    /// class.
    pub(super) fn plan<E: Compacts<Cursor = C> + ?Sized>(
        engine: &E,
        thoroughness: Thoroughness,
        gain_bytes_min: u64,
    ) -> Result<Option<Pass<C>>, Error> {
        engine.settle()?;
        let heap = engine.heap();
        heap.gather(engine.medium());
        let mut chunks = Vec::new();
        heap.evacuation().each_unowned_chunk(&mut |chunk| chunks.push(chunk));
        let mut plan = Plan::of(chunks, thoroughness);
        if plan.leaving_bytes() + heap.chunks().discardable_bytes() < gain_bytes_min {
            return Ok(None);
        }
        engine.prepare_to_compact()?;
        let moved_bytes_total = plan.moved_bytes();
        plan.leaving.retain(|&chunk| heap.evacuation().evacuate(chunk));
        let stage = if plan.leaving.is_empty() { Stage::GivingBack(0) } else { Stage::Moving(C::default()) };
        Ok(Some(Pass { plan, stage, moved_bytes_total, report: CompactionReport::default() }))
    }

    /// Takes a step; returns true when no work is left.
    pub(super) fn step<E: Compacts<Cursor = C> + ?Sized>(&mut self, engine: &E) -> Result<bool, Error> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        self.stage = match stage {
            Stage::Moving(cursor) => {
                let next = engine.move_part(self, cursor)?;
                engine.settle()?;
                next.map_or(Stage::Waiting(0), Stage::Moving)
            }
            Stage::Waiting(count) => wait_for_readers(engine, count)?,
            Stage::GivingBack(from) => match engine.heap().discard_free_run(engine.medium(), from) {
                Some((next, bytes)) => {
                    self.note_freed(engine, bytes);
                    Stage::GivingBack(next)
                }
                None => Stage::GivingBackAbove,
            },
            Stage::GivingBackAbove => match engine.heap().chunks().discard_above_mark(engine.medium()) {
                Some(bytes) => {
                    self.note_freed(engine, bytes);
                    Stage::GivingBackAbove
                }
                None => Stage::Over,
            },
            Stage::Over => Stage::Over,
        };
        Ok(matches!(self.stage, Stage::Over))
    }

    fn note_freed<E: Compacts<Cursor = C> + ?Sized>(&mut self, engine: &E, bytes: u64) {
        self.report.freed_bytes += bytes;
        engine.compaction().note_freed(bytes);
    }

    /// Ends the evacuation and the filling of chunks.
    pub(super) fn end<E: Compacts<Cursor = C> + ?Sized>(&mut self, engine: &E) {
        engine.heap().evacuation().stop_filling(engine.medium());
        for chunk in self.plan.leaving.drain(..) {
            engine.heap().evacuation().stop_evacuating(engine.medium(), chunk);
        }
    }
}

/// Waits for readers of moved items, and returns the next stage. A pinned caller does not wait, because it would wait
/// for itself.
fn wait_for_readers<E: Compacts + ?Sized>(engine: &E, count: u32) -> Result<Stage<E::Cursor>, Error> {
    if epoch::is_pinned() || count == READER_WAITS_MAX || !engine.settle()? {
        return Ok(Stage::GivingBack(0));
    }
    thread::yield_now();
    Ok(Stage::Waiting(count + 1))
}
