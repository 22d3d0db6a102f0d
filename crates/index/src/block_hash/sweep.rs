//! Walks over all segments: the sweep after open, walks for readers, and `clear`
//! (`docs/decisions/0008-clear-by-changing-the-generation.md`).
//!
//! A walk holds no lock between two segments, and advances by prefix; see [`Cursor`]. Each segment is copied under
//! all of its locks, because items move between the buckets.

use std::collections::HashSet;

use heap::{HeapError, InvalidPlace};
use pmem::{Dram, Level, Medium, MediumError, Offset, Ticket};

use super::image::{Image, Words};
use super::open::empty_root;
use super::segment::{Segment, clear_bits};
use super::{BlockHash, Root, Slot};
use crate::segmented::Segmented;
use crate::segmented::clear::clear;
use crate::segmented::directory::Retired;
use crate::segmented::{Context, Cursor, Garbage, Misplacement, Table};

/// The items of a segment, each once.
#[derive(Debug, Default)]
pub struct Shown {
    /// The bucket and the slot of each item.
    pub slots: Vec<(Offset, Slot)>,
    /// The commits that make these items durable.
    tickets: Vec<Ticket>,
}

impl Shown {
    /// Waits until the copied items are durable. The caller holds no lock.
    ///
    /// # Errors
    /// Returns the medium's error.
    pub fn settle<M: Medium>(&self, medium: &M) -> Result<(), MediumError> {
        self.tickets.iter().try_for_each(|ticket| medium.acknowledge_met(*ticket).map(drop))
    }
}

impl BlockHash {
    /// Copies the items of the segment at `cursor`, and returns them with the cursor of the next segment. The walk
    /// is not a snapshot. The caller is pinned while using the positions, and settles the items before passing them
    /// on. If the cursor is beyond the last partition, which is possible with an invented number, the walk ends.
    pub fn visit<M: Medium>(&self, medium: &M, cursor: Cursor) -> Result<(Shown, Cursor), MediumError> {
        if cursor.partition >= self.geometry.partition_count() {
            return Ok((Shown::default(), Cursor { done: true, ..cursor }));
        }
        let segment = self.root().at_cursor(cursor);
        let frozen = segment.lock_all();
        let images = self.decided(segment.images(medium));
        drop(frozen);
        let mut shown = Shown::default();
        let mut met = HashSet::new();
        for (_, at, image) in &images {
            shown.slots.extend(image.slots().filter(|(_, slot)| met.insert(*slot)).map(|(_, slot)| (*at, slot)));
            if image.meta().is_any_locked() && medium.is_writable() {
                shown.tickets.push(medium.commit_published(*at, at.0));
            }
        }
        // A batch that a failed medium prevented from finishing.
        if medium.is_writable() && self.overlay().is_some_and(|overlay| overlay.is_decided()) {
            shown.tickets.push(self.batch_ticket(medium));
        }
        medium.check_lost_ranges()?;
        Ok((shown, cursor.past(segment, self.geometry.partition_count())))
    }

    /// Returns the buckets as a decided batch leaves them. A batch stays decided but not carried out in a store
    /// that is open for reading only, or whose medium has failed.
    fn decided(&self, images: Vec<(usize, Offset, Image)>) -> Vec<(usize, Offset, Image)> {
        let Some(overlay) = self.overlay().filter(|overlay| overlay.is_decided()) else { return images };
        let decide = |(number, at, image)| (number, at, overlay.image(at).copied().unwrap_or(image));
        images.into_iter().map(decide).collect()
    }

    /// Sweeps the segment at `cursor`: makes changes of an earlier process durable, removes one of each pair of
    /// duplicates, counts the items, reports the reached places to the allocator, and reports invalid positions to
    /// `misplaced`.
    ///
    /// # Errors
    /// Returns the medium's error.
    pub fn sweep<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        cursor: Cursor,
        misplaced: &mut dyn FnMut(Misplacement),
    ) -> Result<Cursor, HeapError> {
        let _pin = epoch::pin();
        let _partition = self.partitions[cursor.partition].lock();
        let segment = self.root().at_cursor(cursor);
        let _frozen = segment.lock_all();
        if cx.medium.is_writable() {
            segment.make_durable(cx.medium);
            drop_duplicates(cx.medium, segment);
        }
        let is_durable = cx.medium.is_writable() && cx.medium.commit(Level::Strongest).is_done();
        let (mut count, mut met) = (0, HashSet::new());
        for (_, at, image) in self.decided(segment.images(cx.medium)) {
            if is_durable && image.meta().is_any_locked() {
                clear_bits(cx.medium, at);
            }
            // In a store that is open for reading only, duplicates remain.
            for (_, slot) in image.slots().filter(|(_, slot)| cx.medium.is_writable() || met.insert(*slot)) {
                count += 1;
                if !slot.is_intact() {
                    // The slot may have named an item that no other slot names, or may now name the place of
                    // another item.
                    misplaced((at, InvalidPlace { offset: at.0, what: "is a bucket with a damaged slot" }));
                    continue;
                }
                slot.position().into_iter().for_each(|position| match position.place() {
                    Some(place) => reach(cx, at, place, misplaced),
                    None => {
                        misplaced((at, InvalidPlace { offset: position.offset().0, what: "has no valid size class" }))
                    }
                });
            }
        }
        segment.set_count(count);
        segment.places().into_iter().for_each(|place| reach(cx, place.offset, place, misplaced));
        cx.medium.check_lost_ranges().map_err(HeapError::from)?;
        Ok(cursor.past(segment, self.geometry.partition_count()))
    }

    /// Removes every item, as one step for readers and for a crash, like [`crate::PartitionedHash::clear`].
    ///
    /// # Errors
    /// Returns the allocator's error; then nothing has changed.
    pub fn clear<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<Cleared, HeapError> {
        clear(cx, &self.partitions, &self.root, |generation| empty_root(cx, self.geometry, generation)).map(Cleared)
    }
}

/// The structures that `clear` unlinked, to be freed with [`Cleared::free`] when no reader uses them any more.
#[derive(Debug)]
#[must_use]
pub struct Cleared(Retired<Root>);

impl Cleared {
    /// Frees the old segments and their items. The caller has waited until no thread that was pinned during `clear`
    /// is still pinned.
    pub fn free<M: Medium, D: Dram>(self, cx: Context<'_, M, D>) {
        for segment in self.0.segments() {
            let images = segment.images(cx.medium);
            // A damaged slot may name a place that belongs to another item by now.
            let slots = images.iter().flat_map(|(.., image)| image.slots()).filter(|(_, slot)| slot.is_intact());
            // Duplicates name the same place, which must be freed once.
            let items: HashSet<_> = slots.filter_map(|(_, slot)| slot.position()?.place()).collect();
            items.into_iter().chain(segment.places()).for_each(|place| cx.heap.free(cx.medium, place));
        }
        cx.retire(Garbage::Table(Table::new(self.0)));
    }
}

/// Keeps one of each set of equal slots. The caller holds all locks, and everything is durable.
fn drop_duplicates<M: Medium>(medium: &M, segment: &Segment) {
    let mut met = HashSet::new();
    for (number, at, image) in segment.images(medium) {
        let duplicates = image.slots().filter(|(_, slot)| !met.insert(*slot));
        let meta = duplicates.fold(image.meta(), |meta, (i, _)| meta.without(i));
        if meta.bitmap() != image.meta().bitmap() {
            segment.raise(number);
            // If the medium has failed, both stay, and a reader uses the first.
            let _ = medium.publish(&[(at, meta.0)], at.0);
            medium.order();
        }
    }
}

fn reach<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    named_at: Offset,
    place: heap::Place,
    misplaced: &mut dyn FnMut(Misplacement),
) {
    match cx.heap.sweep().mark_reached(place) {
        Ok(true) => {}
        Ok(false) => misplaced((named_at, InvalidPlace { offset: place.offset.0, what: "is named by two slots" })),
        Err(wrong) => misplaced((named_at, wrong)),
    }
}
