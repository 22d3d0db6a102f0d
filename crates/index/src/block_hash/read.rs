//! Reads without a lock.
//!
//! # Why both counters are needed
//! A move copies an item into its other bucket, and then empties the slot in the first one. A reader may read the
//! target bucket before the move and the source bucket after it, and find the item in neither. But the counter of
//! the source was raised before the slot was emptied, so a reader that saw the empty slot sees that the counter
//! changed, and reads again. A reader with the opposite order finds the item in both buckets, which is correct. The
//! reuse of a slot is visible in the counter of its own bucket.

use std::ops::ControlFlow;

use pmem::{Medium, MediumError, Offset, Waited};

use super::batch::{Batches, Overlay};
use super::image::{Image, Stored, Words};
use super::layout::{bucket, choices};
use super::segment::Segment;
use super::slot::Key;
use super::{Slot, canary};
use crate::Position;
use crate::segmented::segments::Segments;

/// A reader's view of a bucket.
enum View<'a, M> {
    Stored(Stored<'a, M>),
    /// The result of a batch that is decided but not carried out yet.
    Decided(&'a Image),
}

impl<M: Medium> Words for View<'_, M> {
    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        match self {
            View::Stored(stored) => stored.word(i),
            View::Decided(image) => image.word(i),
        }
    }
}

/// The state on which a lookup depends. Its result counts if the state is unchanged at the end.
pub(super) struct OptimisticRead<'a, M> {
    batches: &'a Batches,
    pub(super) medium: &'a M,
    segment: &'a Segment,
    /// The segment that the directory names for readers. A search uses the segment's table, which must be loaded
    /// first.
    start: Offset,
    overlay: Option<&'a Overlay>,
    is_decided: bool,
    numbers: [usize; 2],
    counters: [u64; 2],
}

impl<'a, M: Medium> OptimisticRead<'a, M> {
    #[inline(always)]
    pub(super) fn begin(
        segments: &'a Segments<Segment>,
        batches: &'a Batches,
        medium: &'a M,
        signature: u64,
    ) -> OptimisticRead<'a, M> {
        let ((start, segment), numbers) = (segments.both(signature), choices(signature));
        let counters = numbers.map(|number| segment.counter(number));
        let overlay = if medium.breaks(canary::HALF_BATCH_SEEN) { None } else { batches.overlay() };
        let is_decided = overlay.is_some_and(Overlay::is_decided);
        OptimisticRead { batches, medium, segment, start, overlay, is_decided, numbers, counters }
    }

    /// Returns the places of both buckets, if there are no chained segments and the buckets must be read as stored.
    /// The places are known before the line of the segment's table has arrived.
    #[inline(always)]
    pub(super) fn plain_places(&self) -> Option<[Offset; 2]> {
        let is_plain = !self.is_decided && self.segment.is_alone_at(self.start);
        is_plain.then(|| self.numbers.map(|number| bucket(self.start, number)))
    }

    #[inline(always)]
    fn view(&self, at: Offset) -> View<'a, M> {
        match self.overlay.filter(|_| self.is_decided).and_then(|overlay| overlay.image(at)) {
            Some(image) => View::Decided(image),
            None => View::Stored(Stored { medium: self.medium, at }),
        }
    }

    /// Returns true if everything read so far is from the same moment.
    #[inline(always)]
    pub(super) fn is_steady(&self) -> bool {
        self.medium.acquire();
        let now = if self.medium.breaks(canary::HALF_BATCH_SEEN) { None } else { self.batches.overlay() };
        let is_same = match (self.overlay, now) {
            (None, None) => true,
            (Some(then), Some(now)) => std::ptr::eq(then, now) && self.is_decided == now.is_decided(),
            _ => false,
        };
        is_same && self.is_counted_the_same()
    }

    #[inline(always)]
    fn is_counted_the_same(&self) -> bool {
        let ignored = [canary::FIRST_COUNTER_IGNORED, canary::SECOND_COUNTER_IGNORED];
        (0..2).all(|i| self.segment.counter(self.numbers[i]) == self.counters[i] || self.medium.breaks(ignored[i]))
    }

    /// Makes the observed state of the bucket at `at` durable. Its meta word has lock bits.
    #[cold]
    fn settle(&self, choice: usize, at: Offset) -> Result<(), MediumError> {
        let (medium, number) = (self.medium, self.numbers[choice]);
        // The counter is read before the ticket is requested, and never in the middle of a write: a writer that has
        // raised it and still publishes may become durable later.
        let counter = self.segment.published_counter(number);
        let ticket = medium.commit_published(at, at.0);
        if medium.acknowledge_met(ticket)? == Waited::Durable {
            counter.into_iter().for_each(|counter| self.segment.unlock_bits(medium, number, at, counter));
        }
        Ok(())
    }

    /// Makes the observed state durable, if necessary.
    #[inline(always)]
    fn settle_read(&self, view: &View<'_, M>, is_locked: bool, choice: usize, at: Offset) -> Result<(), MediumError> {
        match view {
            View::Decided(_) if is_locked => self.batches.settle(self.medium),
            View::Stored(_) if is_locked && self.medium.is_writable() => self.settle(choice, at),
            View::Stored(_) | View::Decided(_) => Ok(()),
        }
    }

    /// Returns the buckets of the key in the order in which they are read: the number of the choice (0 or 1) and
    /// the place.
    #[inline(always)]
    fn buckets(&self) -> impl Iterator<Item = (usize, Offset)> + '_ {
        let numbers = self.numbers;
        self.segment.offsets().flat_map(move |segment| [0, 1].map(|choice| (choice, bucket(segment, numbers[choice]))))
    }

    /// Tries once. Returns `Continue` if something changed during the attempt.
    #[inline(always)]
    pub(super) fn find<E: From<MediumError>>(
        &self,
        key: Key<'_>,
        is_key: &mut impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<ControlFlow<Option<Slot>>, E> {
        let (is_believed, heads) = (self.medium.breaks(canary::LOCK_BIT_BELIEVED), key.heads());
        for (choice, at) in self.buckets() {
            let view = self.view(at);
            let meta = view.meta();
            for i in meta.slots().filter(|&i| !is_believed || !meta.is_locked(i)) {
                if !heads.may_be(meta.shape(i), view.head(i)) {
                    continue;
                }
                let slot = view.slot(meta, i);
                if !key.may_be_in(&slot) {
                    continue;
                }
                if !self.is_steady() {
                    return Ok(ControlFlow::Continue(()));
                }
                if key.is_in(&slot, is_key)? {
                    let is_locked = meta.is_locked(i) && !self.medium.breaks(canary::BLOCK_READ_UNSETTLED);
                    self.settle_read(&view, is_locked, choice, at)?;
                    return Ok(ControlFlow::Break(Some(slot)));
                }
            }
        }
        if !self.is_steady() {
            return Ok(ControlFlow::Continue(()));
        }
        self.settle_absence()?;
        Ok(ControlFlow::Break(None))
    }

    /// Makes an absence durable before it is reported. Any lock bit counts, because the slot of a removed item may
    /// hold another item by now.
    #[inline(always)]
    fn settle_absence(&self) -> Result<(), MediumError> {
        for (choice, at) in self.buckets() {
            let view = self.view(at);
            let is_locked = view.meta().is_any_locked() && !self.medium.breaks(canary::BLOCK_ABSENT_UNSETTLED);
            self.settle_read(&view, is_locked, choice, at)?;
        }
        self.medium.check_lost_ranges()
    }
    /// Returns a damaged bucket, if this read is steady.
    pub(super) fn damaged_bucket(&self) -> ControlFlow<Option<Offset>> {
        let damaged = self.buckets().map(|(_, at)| at).find(|&at| self.view(at).has_damaged_slot());
        if self.is_steady() { ControlFlow::Break(damaged) } else { ControlFlow::Continue(()) }
    }
}
