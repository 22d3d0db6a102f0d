//! A segment's volatile side: its locks and counts.

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

/// Locks, counts and flags of one segment; two lines of DRAM. What every write asks is in the first one, and counts, which only
/// inserts and deletes change, are behind it: an update touches one line.
#[repr(C, align(64))]
pub(super) struct Segment {
    offset: Offset,
    prefix: u64,
    pub(super) due: Due,
    depth: u32,
    /// Split or cleared: a thread that gets a lock looks the segment up again.
    dead: Flag,
    /// Everything in it is known to be durable, FRESH words aside. False after open, unless a clean image is there: an
    /// earlier process may have been killed between a store and its flush.
    durable: AtomicBool,
    stash: Lock,
    pairs: [Lock; PAIR_COUNT as usize],
    /// Entries whose home is the pair, wherever they lie. Changed under the pair's lock.
    counts: [AtomicU16; PAIR_COUNT as usize],
}

// A model checker's locks are longer.
#[cfg(not(test))]
const _: () = assert!(offset_of!(Segment, counts) <= 64 && size_of::<Segment>() == 128);

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Segment { offset, prefix, depth, dead, .. } = self;
        write!(f, "Segment {{ offset: {:#x}, prefix: {prefix:#x}, depth: {depth}, dead: {dead:?} }}", offset.0)
    }
}

impl Segmented for Segment {
    type Frozen<'a> = Vec<Locked<'a>>;

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

    fn lock_all(&self) -> Self::Frozen<'_> {
        self.pairs.iter().chain([&self.stash]).map(Lock::lock).collect()
    }

    fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }
}

impl Segment {
    /// The table of the segment at `offset`. `durable`: it was written by this process, and ordered. `due`: see [`super::due`].
    pub(super) fn new(offset: Offset, header: SegmentHeader, durable: bool, due: u64) -> Box<Segment> {
        Box::new(Segment {
            offset,
            prefix: header.prefix,
            due: Due::at(due),
            depth: header.depth,
            dead: Flag::new(false),
            durable: AtomicBool::new(durable),
            stash: Lock::new(),
            pairs: std::array::from_fn(|_| Lock::new()),
            counts: [const { AtomicU16::new(0) }; PAIR_COUNT as usize],
        })
    }

    pub(super) fn offset(&self) -> Offset {
        self.offset
    }

    pub(super) fn prefix(&self) -> u64 {
        self.prefix
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Asks for what every write needs: the locks.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        pmem::arch::prefetch(ptr::from_ref(self).cast());
    }

    /// Asks for the pair's count, too.
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

    /// Whether the pair's lock is held.
    #[cfg(test)]
    pub(super) fn is_locked(&self, pair: u64) -> bool {
        self.pairs[pair as usize].is_locked()
    }

    #[inline(always)]
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Changes the pair's count; the caller holds its lock.
    #[inline(always)]
    pub(super) fn count(&self, pair: u64, by: i16) {
        let count = &self.counts[pair as usize];
        count.store(count.load(Ordering::Relaxed).wrapping_add_signed(by), Ordering::Relaxed);
    }

    /// Sets every pair's count; the caller holds all locks. How many entries that is more: those which were there before any thread
    /// counted, and never fewer.
    pub(super) fn set_counts(&self, counts: &[u16; PAIR_COUNT as usize]) -> i64 {
        let more = more(&self.counts(), counts);
        for (count, &value) in self.counts.iter().zip(counts) {
            count.store(value, Ordering::Relaxed);
        }
        more
    }

    /// Every pair's count.
    pub(super) fn counts(&self) -> [u16; PAIR_COUNT as usize] {
        std::array::from_fn(|pair| self.counts[pair].load(Ordering::Relaxed))
    }

    /// Everything in the segment is known to be durable: its last writer closed in an orderly way.
    pub(super) fn trust(&self) {
        self.durable.store(true, Ordering::Release);
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum()
    }

    /// Makes what an earlier process left in the segment durable as it stands, once. A word that is visible but not
    /// durable could otherwise be relied on (an overflow bit, a chain) and then be lost.
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

    /// Every entry word of the segment and its chain, in their order.
    pub(super) fn entries<'a, M: Medium>(&'a self, medium: &'a M) -> impl Iterator<Item = Entry> + 'a {
        let lines = self.chain(medium).flat_map(entry_lines);
        lines.flat_map(|line| (0..4).map(move |i| slot(line, i))).map(|slot| Entry::read(medium, slot))
    }
}

impl Segment {
    /// Shows every entry of the segment and its chain that has a position to `each`, as it was at one moment.
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

/// How many entries `counted` has that `before` does not know of: where nobody has counted yet, that has only what writers did since,
/// and may have gone below 0.
pub(super) fn more(before: &[u16; PAIR_COUNT as usize], counted: &[u16; PAIR_COUNT as usize]) -> i64 {
    counted.iter().zip(before).map(|(counted, before)| i64::from(counted.wrapping_sub(*before))).sum()
}

/// The segment that is chained to the one at `segment`.
#[inline]
pub(super) fn chained<M: Medium>(medium: &M, segment: Offset) -> Option<Offset> {
    let next = unseal(medium.load(segment.plus(NEXT_BYTES), Ordering::Acquire))?;
    (next != 0 && next + SEGMENT_BYTES <= medium.len_bytes()).then_some(Offset(next))
}

/// An entry as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it is.
    pub slot: Slot,
    /// The key's signature.
    pub signature: u64,
    /// The word that decides whether it is one.
    pub position: Position,
}

impl Entry {
    /// Reads the entry at `slot`.
    #[inline(always)]
    pub(super) fn read<M: Medium>(medium: &M, slot: Slot) -> Entry {
        let position = Position::from_word(medium.load(slot.position, Ordering::Acquire));
        Entry { slot, signature: medium.load(slot.signature, Ordering::Relaxed), position }
    }

    /// True if the slot still names the item: then what was read there since is of this one entry. A slot's signature
    /// changes only while the slot is free, and an item that a pinned caller saw is not put anywhere anew.
    #[inline]
    pub(super) fn is_still<M: Medium>(&self, medium: &M) -> bool {
        medium.acquire();
        Position::from_word(medium.load(self.slot.position, Ordering::Relaxed)).item() == self.position.item()
    }

    /// The entry at `slot`, its two words of one moment. The caller is pinned.
    pub(super) fn steady<M: Medium>(medium: &M, slot: Slot) -> Entry {
        loop {
            let entry = Entry::read(medium, slot);
            if entry.is_still(medium) {
                return entry;
            }
        }
    }

    /// As [`Entry::decided`], the signature and the position of one moment. The caller is pinned.
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

    /// The entry without marks: durable, and as its batch decides, if it is in one.
    #[inline]
    pub(super) fn decided<M: Medium>(self, medium: &M, batches: &Batches) -> Result<Entry, MediumError> {
        if !self.position.is_undecided() {
            return Ok(self);
        }
        Ok(Entry { position: batches.decided(medium, self.slot, self.position)?, ..self })
    }
}
