//! The volatile part of a segment: locks and counters of the buckets, and the segments chained to it.

use std::iter;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heap::HeapError;
use heap::layout::SEGMENT_BYTES;
use pmem::{Medium, Offset, unseal};

use super::canary;
use super::image::{Image, Stored, Words};
use super::layout::{BUCKET_COUNT, Meta, bucket};
use crate::segmented::Segmented;
use crate::segmented::layout::{NEXT_BYTES, SegmentHeader};
use crate::shared::{Flag, HeldLocks, Locks, Word};

/// Locks, counters and flags of one segment and those chained to it. One lock and one counter serve bucket `i` of
/// all of them.
#[repr(C, align(64))]
pub(super) struct Segment {
    // The first line holds the fields that writes read.
    first: Link,
    locks: Locks,
    item_count: AtomicU64,
    /// True after a split or a clear: a thread that gets a lock must then find the segment again.
    dead: Flag,
    /// True if everything in the segment is known to be durable, except slots with lock bits. False after open,
    /// because an earlier process may have been killed between a store and its flush.
    durable: AtomicBool,
    header: SegmentHeader,
    counters: [Word; BUCKET_COUNT],
}

#[cfg(not(test))]
const _: () = assert!(std::mem::offset_of!(Segment, header) <= pmem::LINE_BYTES as usize);

struct Link {
    offset: Offset,
    next: OnceLock<Box<Link>>,
}

impl Link {
    fn new(offset: Offset) -> Link {
        Link { offset, next: OnceLock::new() }
    }
}

impl Segmented for Segment {
    type AllLocks<'a> = Vec<HeldLocks<'a>>;

    #[inline(always)]
    fn offset(&self) -> Offset {
        self.first.offset
    }

    #[inline(always)]
    fn prefix(&self) -> u64 {
        self.header.prefix
    }

    #[inline(always)]
    fn depth(&self) -> u32 {
        self.header.depth
    }

    fn chain<M: Medium>(&self, _medium: &M) -> impl Iterator<Item = Offset> {
        self.offsets()
    }

    fn lock_all(&self) -> Self::AllLocks<'_> {
        self.locks.lock_in_turn(BUCKET_COUNT)
    }

    fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }
}

impl Segment {
    /// Creates the table of the segment at `offset`. `durable` is true if this process wrote and ordered the
    /// segment.
    pub(super) fn new(offset: Offset, header: SegmentHeader, durable: bool) -> Box<Segment> {
        Box::new(Segment {
            first: Link::new(offset),
            header,
            dead: Flag::new(false),
            durable: AtomicBool::new(durable),
            item_count: AtomicU64::new(0),
            locks: Locks::new(),
            counters: std::array::from_fn(|_| Word::new(0)),
        })
    }

    /// Links the segments that are chained to this one.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a chain word is damaged.
    pub(super) fn link_chain<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        let mut last = self.offset();
        loop {
            let at = last.plus(NEXT_BYTES);
            let next = match medium.load(at, Ordering::Acquire) {
                0 => return Ok(()),
                word => unseal(word).filter(|next| next + SEGMENT_BYTES <= medium.len_bytes()),
            };
            let is_new = |next: &u64| self.offsets().all(|offset| offset.0 != *next);
            let damaged = HeapError::Damaged { offset: at.0, what: "the word that names a chained segment is damaged" };
            last = Offset(next.filter(is_new).ok_or(damaged)?);
            self.link(last);
        }
    }

    /// Adds a segment to the end of the chain. The caller holds all locks, or is the only thread that has the
    /// table.
    pub(super) fn link(&self, offset: Offset) {
        let last = iter::successors(Some(&self.first), |link| link.next.get().map(|link| &**link)).last();
        let added = last.is_some_and(|last| last.next.set(Box::new(Link::new(offset))).is_ok());
        debug_assert!(added, "two threads chained a segment at once");
    }

    /// Returns the offsets of the segment and of those chained to it.
    #[inline(always)]
    pub(super) fn offsets(&self) -> impl Iterator<Item = Offset> + '_ {
        iter::successors(Some(&self.first), |link| link.next.get().map(|link| &**link)).map(|link| link.offset)
    }

    /// Returns true if the segment is at `offset` and no other is chained to it.
    #[inline(always)]
    pub(super) fn is_alone_at(&self, offset: Offset) -> bool {
        self.first.offset == offset && self.first.next.get().is_none()
    }

    /// Locks these buckets.
    #[inline(always)]
    pub(super) fn lock<const COUNT: usize>(&self, numbers: [usize; COUNT]) -> HeldLocks<'_> {
        self.locks.lock(numbers)
    }

    /// Locks one more bucket, unless another thread holds its lock.
    pub(super) fn try_lock(&self, number: usize) -> Option<HeldLocks<'_>> {
        self.locks.try_lock([number])
    }

    /// Returns true if the locks of all buckets are held.
    #[cfg(test)]
    pub(super) fn is_frozen(&self) -> bool {
        self.locks.are_held(BUCKET_COUNT)
    }

    /// Prefetches the locks and counters of these buckets.
    #[inline(always)]
    pub(super) fn prefetch(&self, numbers: [usize; 2]) {
        pmem::arch::prefetch(ptr::from_ref(self).cast());
        numbers.into_iter().for_each(|number| pmem::arch::prefetch(ptr::from_ref(&self.counters[number]).cast()));
    }

    /// Returns the counter of a bucket, which changes whenever a slot is reused or its item moves to another
    /// bucket.
    #[inline(always)]
    pub(super) fn counter(&self, number: usize) -> u64 {
        self.counters[number].load(Ordering::Acquire)
    }

    /// Returns the counter if everything up to it is published, because no thread holds the bucket's lock.
    pub(super) fn published_counter(&self, number: usize) -> Option<u64> {
        let _lock = self.try_lock(number)?;
        Some(self.counter(number))
    }

    /// Raises the bucket's counter. The caller holds the bucket's lock; the stores that readers must notice come
    /// afterwards.
    #[inline(always)]
    pub(super) fn raise(&self, number: usize) -> u64 {
        let raised = self.counter(number) + 1;
        self.counters[number].store(raised, Ordering::Release);
        raised
    }

    #[inline(always)]
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(super) fn count(&self, by: i64) {
        self.item_count.fetch_add(by as u64, Ordering::Relaxed);
    }

    pub(super) fn set_count(&self, count: u64) {
        self.item_count.store(count, Ordering::Relaxed);
    }

    pub(super) fn item_count(&self) -> u64 {
        self.item_count.load(Ordering::Relaxed)
    }

    /// Copies every bucket, with its number and place. The caller holds all locks.
    pub(super) fn images<M: Medium>(&self, medium: &M) -> Vec<(usize, Offset, Image)> {
        let all = self.offsets().flat_map(|segment| (0..BUCKET_COUNT).map(move |i| (i, bucket(segment, i))));
        all.map(|(number, at)| (number, at, Image::of(medium, at))).collect()
    }

    /// Makes everything that an earlier process left in the segment durable, once. Otherwise a writer could rely on
    /// a state that is visible but not durable, and a crash could lose it.
    #[inline(always)]
    pub(super) fn make_durable<M: Medium>(&self, medium: &M) {
        if !self.durable.load(Ordering::Acquire) {
            self.flush_all(medium);
        }
    }

    #[cold]
    fn flush_all<M: Medium>(&self, medium: &M) {
        if !medium.breaks(canary::SEGMENT_LEFT_AS_FOUND) {
            self.offsets().for_each(|offset| medium.flush(offset.span(SEGMENT_BYTES)));
            medium.order();
        }
        self.durable.store(true, Ordering::Release);
    }

    /// Clears the lock bits of a bucket in which everything up to `counter` is durable. It does not wait for the
    /// lock. The word is not flushed: a lock bit that reappears after a crash is only a hint.
    pub(super) fn unlock_bits<M: Medium>(&self, medium: &M, number: usize, at: Offset, counter: u64) {
        let Some(_lock) = self.try_lock(number) else { return };
        if self.counter(number) == counter {
            clear_bits(medium, at);
        }
    }
}

/// Clears the lock bits of a bucket. The caller holds its lock.
#[inline(always)]
pub(super) fn clear_bits<M: Medium>(medium: &M, at: Offset) {
    let Meta(word) = Stored { medium, at }.meta().unlocked();
    medium.store(at, word, Ordering::Release);
}
