//! Reads without a lock.
//!
//! # Why both counters are needed
//! A move copies an item into its other bucket, and then empties the slot in the first one. A reader may read the
//! target bucket before the move and the source bucket after it, and find the item in neither. But the counter of
//! the source was raised before the slot was emptied, so a reader that saw the empty slot sees that the counter
//! changed, and reads again. A reader with the opposite order finds the item in both buckets, which is correct. The
//! reuse of a slot is visible in the counter of its own bucket.

use std::hint;
use std::ops::ControlFlow;

use pmem::{LINE_BYTES, Medium, MediumError, Offset, Waited};

use super::batch::Overlay;
use super::canary;
use super::image::{Image, Stored, Words};
use super::layout::{BUCKET_BYTES, bucket, choices};
use super::segment::Segment;
use super::slot::Heads;
use super::{BlockHash, Content, Slot};
use crate::Position;

/// A key to find.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The bytes of the key.
    pub bytes: &'a [u8],
    /// The signature of the key.
    pub signature: u64,
}

impl Key<'_> {
    /// Returns the beginnings of slots that may hold the key.
    #[inline(always)]
    pub(super) fn heads(&self) -> Heads {
        Heads::of(self.bytes, self.signature)
    }

    /// Returns true if `slot` holds the key. If the slot does not decide this, calls `is_key`, which reads the
    /// item.
    #[inline(always)]
    pub(super) fn is_in<E>(
        &self,
        slot: &Slot,
        is_key: &mut impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<bool, E> {
        match slot.content() {
            Content::Whole { key, .. } => Ok(key == self.bytes),
            Content::Item { signature, position } if signature == self.signature => is_key(position),
            _ => Ok(false),
        }
    }

    #[inline(always)]
    pub(super) fn may_be_in(&self, slot: &Slot) -> bool {
        match slot.content() {
            Content::Whole { key, .. } => key == self.bytes,
            Content::Item { signature, .. } => signature == self.signature,
            Content::Damaged => false,
        }
    }
}

/// The place to which a write of a signature leads.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) segment: &'a Segment,
    pub(super) numbers: [usize; 2],
}

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
    table: &'a BlockHash,
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
    pub(super) fn begin(table: &'a BlockHash, medium: &'a M, signature: u64) -> OptimisticRead<'a, M> {
        let ((start, segment), numbers) = (table.root().both(table.geometry, signature), choices(signature));
        let counters = numbers.map(|number| segment.counter(number));
        let overlay = if medium.breaks(canary::HALF_BATCH_SEEN) { None } else { table.overlay() };
        let is_decided = overlay.is_some_and(Overlay::is_decided);
        OptimisticRead { table, medium, segment, start, overlay, is_decided, numbers, counters }
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
        let now = if self.medium.breaks(canary::HALF_BATCH_SEEN) { None } else { self.table.overlay() };
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
            View::Decided(_) if is_locked => self.table.settle_batch(self.medium),
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
    fn find<E: From<MediumError>>(
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
}

impl BlockHash {
    /// Prefetches the lines with which a write of the signature begins: two buckets, with locks and counters. The
    /// caller is pinned while it uses the result.
    #[inline(always)]
    pub fn prefetch<M: Medium>(&self, medium: &M, signature: u64) -> Target<'_> {
        let (start, segment) = self.root().both(self.geometry, signature);
        let numbers = choices(signature);
        segment.prefetch(numbers);
        let lines = (0..BUCKET_BYTES).step_by(LINE_BYTES as usize);
        let lines =
            numbers.into_iter().flat_map(|number| lines.clone().map(move |byte| bucket(start, number).plus(byte)));
        lines.for_each(|line| medium.prefetch_line(line));
        Target { segment, numbers }
    }

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
        if let Some(found) = self.try_find(medium, key, &mut is_key)? {
            return Ok(found);
        }
        loop {
            match OptimisticRead::begin(self, medium, key.signature).find(key, &mut is_key)? {
                ControlFlow::Break(found) => return Ok(found),
                ControlFlow::Continue(()) => hint::spin_loop(),
            }
        }
    }

    /// Returns a bucket of the signature that has a damaged slot, which might hold a key that was not found. The
    /// caller is pinned.
    pub fn damaged_bucket<M: Medium>(&self, medium: &M, signature: u64) -> Option<Offset> {
        loop {
            let read = OptimisticRead::begin(self, medium, signature);
            let damaged = read.buckets().find(|(_, at)| read.view(*at).has_damaged_slot());
            if read.is_steady() {
                return damaged.map(|(_, at)| at);
            }
            hint::spin_loop();
        }
    }
}
