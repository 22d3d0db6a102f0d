//! Walks over all segments: the sweep after open, walks for readers, checks, moves ahead of inserts, and `clear`
//! (`docs/decisions/0004-grow-the-index-by-splitting-small-segments.md`).
//!
//! A walk holds no lock between two segments, and advances by prefix; see [`Cursor`]. Each segment is copied under
//! all of its locks, because items move between the buckets.

use std::collections::HashSet;

use heap::{HeapError, InvalidPlace};
use pmem::{Dram, Level, Medium, MediumError, Offset, Ticket};

use super::buckets::Bucket;
use super::check::{Damage, check};
use super::image::{SegmentImage, Words};
use super::layout::{BUCKET_COUNT, bucket};
use super::moves::light_item;
use super::segment::{Segment, clear_bits};
use super::{BlockHash, Root, Slot};
use crate::segmented::directory::Retired;
use crate::segmented::layout::Geometry;
use crate::segmented::sweep::reach;
use crate::segmented::{Context, Cursor, Misplacement, Segmented, clear};

/// The damage of a place that several slots name.
const TWICE: &str = "is named by two slots";

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
        if !self.segments.has(cursor) {
            return Ok((Shown::default(), Cursor { done: true, ..cursor }));
        }
        let segment = self.segments.at(cursor);
        let frozen = segment.lock_all();
        let images = self.batches.decided_images(segment.images(medium));
        drop(frozen);
        let mut shown = Shown::default();
        let mut met = HashSet::new();
        for (_, at, image) in images {
            shown.slots.extend(image.slots().filter(|(_, slot)| met.insert(*slot)).map(|(_, slot)| (at, slot)));
            if image.meta().is_any_locked() && medium.is_writable() {
                shown.tickets.push(medium.commit_published(at, at.0));
            }
        }
        shown.tickets.extend(self.batches.unfinished(medium));
        medium.check_lost_ranges()?;
        Ok((shown, self.segments.past(cursor, segment)))
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
        let _partition = self.segments.lock_partition(cursor.partition);
        let segment = self.segments.at(cursor);
        let _frozen = segment.lock_all();
        if cx.medium.is_writable() {
            segment.make_durable(cx.medium);
            drop_duplicates(cx.medium, segment);
        }
        let is_durable = cx.medium.is_writable() && cx.medium.commit(Level::Strongest).is_done();
        let (mut count, mut met) = (0, HashSet::new());
        for (_, at, image) in self.batches.decided_images(segment.images(cx.medium)) {
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
                    Some(place) => reach(cx, at, place, TWICE, misplaced),
                    None => {
                        misplaced((at, InvalidPlace { offset: position.offset().0, what: "has no valid size class" }))
                    }
                });
            }
        }
        segment.set_count(count);
        segment.places(cx.medium).for_each(|place| reach(cx, place.offset, place, TWICE, misplaced));
        cx.medium.check_lost_ranges().map_err(HeapError::from)?;
        Ok(self.segments.past(cursor, segment))
    }

    /// Reports the damage in the segment at `cursor` to `damaged`, and passes every slot to `each`, including both
    /// of duplicates. The caller is pinned. The store must have been swept. No thread may write to the segment during
    /// the call; otherwise damage may be reported that does not exist.
    pub fn check_segment<M: Medium>(
        &self,
        medium: &M,
        cursor: Cursor,
        damaged: &mut dyn FnMut(Damage),
        each: &mut dyn FnMut(Offset, &Slot),
    ) -> Cursor {
        let segment = self.segments.at(cursor);
        let parts = (self.segments.geometry(), &self.signer, &self.batches);
        check(medium, segment, parts, damaged, each);
        self.segments.past(cursor, segment)
    }

    /// Moves items of full buckets in the segment at `cursor` into light ones, ahead of inserts. Returns the number
    /// of moved items and the cursor of the next segment. The caller is pinned, and the store has been swept.
    pub fn pre_evict<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>, cursor: Cursor) -> (u64, Cursor) {
        let segment = self.segments.at(cursor);
        let all = segment
            .offsets()
            .flat_map(|segment| (0..BUCKET_COUNT).map(move |number| Bucket { number, at: bucket(segment, number) }));
        let movable = all.filter_map(|from| {
            light_item(cx.medium, &self.signer, from).map(|(signature, slot)| (from, signature, slot))
        });
        let move_out = |(from, signature, slot): &(Bucket, u64, Slot)| {
            let buckets = self.lock(cx, *signature);
            buckets.buckets().any(|own| own == *from) && buckets.move_out(*from, slot)
        };
        let moved = movable.filter(move_out);
        let moved_count = moved.count() as u64;
        self.moves.note_moves(moved_count);
        (moved_count, self.segments.past(cursor, segment))
    }

    /// Removes every item, as one step for readers and for a crash, like [`crate::PartitionedHash::clear`].
    ///
    /// # Errors
    /// Returns the allocator's error; then nothing has changed.
    pub fn clear<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<Cleared, HeapError> {
        let empty = |generation| empty_root(cx, self.segments.geometry(), generation);
        self.segments.clear(cx, empty).map(Cleared)
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
        clear::free(cx, self.0, |segment| {
            let images = segment.images(cx.medium);
            // A damaged slot may name a place that belongs to another item by now.
            let slots = images.iter().flat_map(|(.., image)| image.slots()).filter(|(_, slot)| slot.is_intact());
            // Duplicates name the same place, which must be freed once.
            slots.filter_map(|(_, slot)| slot.position()?.place()).collect::<HashSet<_>>()
        });
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

/// Creates a root of empty segments; see [`segmented::clear::empty_root`](crate::segmented::clear::empty_root).
pub(super) fn empty_root<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    generation: u16,
) -> Result<Box<Root>, HeapError> {
    clear::empty_root(cx, geometry, generation, |at, header| {
        SegmentImage::new(header).stream(cx.medium, at);
        Segment::new(at, header, true)
    })
}
