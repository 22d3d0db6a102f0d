//! The volatile part of a segment: its locks and counters.

#[cfg(not(test))]
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use pmem::{Medium, MediumError, Offset, Span};

use super::batch::Batches;
use super::due::Due;
use super::layout::{NEXT_BYTES, PAIR_COUNT, SEGMENT_LINE_COUNT, SegmentHeader, entry_lines, slot};
use super::slot::Slot;
use crate::Position;
use crate::canary;
use crate::segmented::Segmented;
use crate::shared::{Flag, Lock, Locked};
use heap::layout::SEGMENT_BYTES;
use pmem::unseal;

const _: () = assert!(SEGMENT_LINE_COUNT * 64 == SEGMENT_BYTES);

/// Locks, counters and flags of one segment, in two lines of DRAM. The first line holds the fields that every write
/// reads. The counters, which only inserts and removals change, follow it. So an update touches one line.
#[repr(C, align(64))]
pub(super) struct Segment {
    offset: Offset,
    prefix: u64,
    pub(super) due: Due,
    depth: u32,
    /// True after a split or a clear: a thread that gets a lock must then find the segment again.
    dead: Flag,
    /// True if everything in the segment is known to be durable, except FRESH words. False after open without a
    /// clean image, because an earlier process may have been killed between a store and its flush.
    durable: AtomicBool,
    stash: Lock,
    pairs: [Lock; PAIR_COUNT as usize],
    /// The number of entries whose home is the pair, wherever they are. Changed under the pair's lock.
    counts: [AtomicU16; PAIR_COUNT as usize],
}

// The locks of a model checker are larger.
#[cfg(not(test))]
const _: () = assert!(offset_of!(Segment, counts) <= 64 && size_of::<Segment>() == 128);

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Segment { offset, prefix, depth, dead, .. } = self;
        write!(f, "Segment {{ offset: {:#x}, prefix: {prefix:#x}, depth: {depth}, dead: {dead:?} }}", offset.0)
    }
}

impl Segmented for Segment {
    type AllLocks<'a> = ([Locked<'a>; PAIR_COUNT as usize], Locked<'a>);

    #[inline(always)]
    fn offset(&self) -> Offset {
        self.offset
    }

    #[inline(always)]
    fn prefix(&self) -> u64 {
        self.prefix
    }

    #[inline(always)]
    fn depth(&self) -> u32 {
        self.depth
    }

    fn chain<M: Medium>(&self, medium: &M) -> impl Iterator<Item = Offset> {
        std::iter::successors(Some(self.offset), |&segment| chained(medium, segment))
    }

    fn lock_all(&self) -> Self::AllLocks<'_> {
        (self.pairs.each_ref().map(Lock::lock), self.stash.lock())
    }

    fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }
}

impl Segment {
    /// Creates the table of the segment at `offset`. `durable` is true if this process wrote and ordered the
    /// segment. `due` is explained in [`super::due`].
    pub(super) fn new(offset: Offset, header: SegmentHeader, durable: bool, due: u64) -> Segment {
        Segment {
            offset,
            prefix: header.prefix,
            due: Due::at(due),
            depth: header.depth,
            dead: Flag::new(false),
            durable: AtomicBool::new(durable),
            stash: Lock::new(),
            pairs: std::array::from_fn(|_| Lock::new()),
            counts: [const { AtomicU16::new(0) }; PAIR_COUNT as usize],
        }
    }

    /// Prefetches the locks, which every write needs.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        pmem::arch::prefetch(ptr::from_ref(self).cast());
    }

    /// Prefetches the pair's counter.
    #[inline(always)]
    pub(super) fn prefetch_count(&self, pair: u64) {
        pmem::arch::prefetch(ptr::from_ref(&self.counts[pair as usize]).cast());
    }

    #[inline(always)]
    pub(super) fn lock_pair(&self, pair: u64) -> Locked<'_> {
        self.pairs[pair as usize].lock()
    }

    pub(super) fn lock_stash(&self) -> Locked<'_> {
        self.stash.lock()
    }

    /// Returns true if the pair's lock is held.
    #[cfg(test)]
    pub(super) fn is_locked(&self, pair: u64) -> bool {
        self.pairs[pair as usize].is_locked()
    }

    #[inline(always)]
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Adds `by` to the pair's counter. The caller holds the pair's lock.
    #[inline(always)]
    pub(super) fn count(&self, pair: u64, by: i16) {
        let count = &self.counts[pair as usize];
        count.store(count.load(Ordering::Relaxed).wrapping_add_signed(by), Ordering::Relaxed);
    }

    /// Sets the counter of every pair, and returns the increase. The increase is the number of entries that existed
    /// before any thread counted; it is never negative. The caller holds all locks.
    pub(super) fn set_counts(&self, counts: &[u16; PAIR_COUNT as usize]) -> i64 {
        let more = more(&self.counts(), counts);
        for (count, &value) in self.counts.iter().zip(counts) {
            count.store(value, Ordering::Relaxed);
        }
        more
    }

    /// Returns the counter of every pair.
    pub(super) fn counts(&self) -> [u16; PAIR_COUNT as usize] {
        std::array::from_fn(|pair| self.counts[pair].load(Ordering::Relaxed))
    }

    /// Records that everything in the segment is durable, because its last writer closed cleanly.
    pub(super) fn trust(&self) {
        self.durable.store(true, Ordering::Release);
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum()
    }

    /// Makes everything that an earlier process left in the segment durable, once. Otherwise a writer could rely on
    /// a word that is visible but not durable (an overflow bit, a chain), and a crash could lose it.
    #[inline(always)]
    pub(super) fn make_durable<M: Medium>(&self, medium: &M) {
        if !self.durable.load(Ordering::Acquire) {
            self.flush_all(medium);
        }
    }

    #[cold]
    fn flush_all<M: Medium>(&self, medium: &M) {
        if !medium.breaks(canary::SEGMENT_LEFT_AS_FOUND) {
            for segment in self.chain(medium) {
                medium.flush(Span { start: segment, len_bytes: SEGMENT_BYTES });
            }
            medium.order();
        }
        self.durable.store(true, Ordering::Release);
    }

    /// Returns every entry of the segment and its chain, in order, including empty ones.
    pub(super) fn entries<'a, M: Medium>(&'a self, medium: &'a M) -> impl Iterator<Item = Entry> + 'a {
        let lines = self.chain(medium).flat_map(entry_lines);
        lines.flat_map(|line| (0..4).map(move |i| slot(line, i))).map(|slot| Entry::read(medium, slot))
    }
}

impl Segment {
    /// Passes every entry of the segment and its chain that has a position to `each`, as it was at one moment.
    #[inline(always)]
    pub(super) fn each_filled<M: Medium, E: From<MediumError>>(
        &self,
        medium: &M,
        batches: &Batches,
        mut each: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        for line in self.chain(medium).flat_map(entry_lines) {
            for (i, word) in medium.load4(slot(line, 0).position).into_iter().enumerate() {
                let (slot, position) = (slot(line, i as u64), Position::from_word(word));
                if !position.is_empty() {
                    let signature = medium.load(slot.signature, Ordering::Relaxed);
                    each(Entry { slot, signature, position }.decided_steady(medium, batches)?)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of entries in `counted` that are missing in `before`. Before the first count, `before`
/// contains only the changes of writers since, and may be below 0.
pub(super) fn more(before: &[u16; PAIR_COUNT as usize], counted: &[u16; PAIR_COUNT as usize]) -> i64 {
    counted.iter().zip(before).map(|(counted, before)| i64::from(counted.wrapping_sub(*before))).sum()
}

/// Returns the segment that is chained to the one at `segment`.
#[inline]
pub(super) fn chained<M: Medium>(medium: &M, segment: Offset) -> Option<Offset> {
    let next = unseal(medium.load(segment.plus(NEXT_BYTES), Ordering::Acquire))?;
    (next != 0 && next + SEGMENT_BYTES <= medium.len_bytes()).then_some(Offset(next))
}

/// An entry as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The place of the entry.
    pub slot: Slot,
    /// The signature of the key.
    pub signature: u64,
    /// The position word, which decides whether the entry exists.
    pub position: Position,
}

impl Entry {
    /// Reads the entry at `slot`.
    #[inline(always)]
    pub(super) fn read<M: Medium>(medium: &M, slot: Slot) -> Entry {
        let position = Position::from_word(medium.load(slot.position, Ordering::Acquire));
        Entry { slot, signature: medium.load(slot.signature, Ordering::Relaxed), position }
    }

    /// Returns true if the slot still names the item. Everything read from the slot since then belongs to this one
    /// entry: a slot's signature changes only while the slot is free, and an item that a pinned caller saw is not
    /// placed anywhere again.
    #[inline]
    pub(super) fn is_still<M: Medium>(&self, medium: &M) -> bool {
        medium.acquire();
        Position::from_word(medium.load(self.slot.position, Ordering::Relaxed)).item() == self.position.item()
    }

    /// Reads the entry at `slot`, with both words from the same moment. The caller is pinned.
    pub(super) fn steady<M: Medium>(medium: &M, slot: Slot) -> Entry {
        loop {
            let entry = Entry::read(medium, slot);
            if entry.is_still(medium) {
                return entry;
            }
        }
    }

    /// Like [`Entry::decided`], with signature and position from the same moment. The caller is pinned.
    #[inline]
    pub(super) fn decided_steady<M: Medium>(self, medium: &M, batches: &Batches) -> Result<Entry, MediumError> {
        let mut seen = self;
        loop {
            let decided = seen.decided(medium, batches)?;
            if seen.is_still(medium) {
                return Ok(decided);
            }
            seen = Entry::read(medium, seen.slot);
        }
    }

    /// Returns the entry without marks: durable, and with the value that its batch decides, if it is in one.
    #[inline]
    pub(super) fn decided<M: Medium>(self, medium: &M, batches: &Batches) -> Result<Entry, MediumError> {
        if !self.position.is_undecided() {
            return Ok(self);
        }
        Ok(Entry { position: batches.decided(medium, self.slot, self.position)?, ..self })
    }
}
