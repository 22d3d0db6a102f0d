//! A bucket: its state, the numbers of begun and pending writes, and the entries.
//!
//! ```text
//! +0   state    bit 0 incomplete, 1 locked, 2- number of unlocks
//! +8   writes   bits 0-15 pending, 16-57 begun, 58-63 entry was read lately
//! +16  entry 0  bit 0 present, 1 hidden, 2-35 place of the copy, in words; 36-63 lowest bits of its signature
//! ...  entry 5
//! ```
//!
//! Only the thread that holds the lock stores to state and entries, so it unlocks by a plain store. Readers set bits in
//! `writes`, to which that thread also stores: such a bit may be lost, which makes an eviction less informed.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pmem::Backoff;
use word::Word;

use super::lines::Line;

pub(super) const ENTRY_COUNT: usize = 6;
const INCOMPLETE: u64 = 1;
const LOCKED: u64 = 2;
const BEGUN_ONE: u64 = 1 << 16;
const READ_SHIFT: u32 = u64::BITS - ENTRY_COUNT as u32;
const READ_LATELY: u64 = !0 << READ_SHIFT;
const PENDING: u64 = BEGUN_ONE - 1;
const THERE: u64 = 1;
const HIDDEN: u64 = 2;
const PLACE_SHIFT: u32 = 2;
const PLACE_BITS: u32 = 34;
const TAG_SHIFT: u32 = PLACE_SHIFT + PLACE_BITS;

/// The maximum number of words of copies, because an entry cannot hold a higher place.
pub(super) const COPY_WORDS_MAX: usize = 1 << PLACE_BITS;

/// The word of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry(u64);

impl Entry {
    pub(super) const NONE: Entry = Entry(0);

    pub(super) fn new(signature: u64, place: usize) -> Entry {
        Entry(signature << TAG_SHIFT | (place as u64) << PLACE_SHIFT | THERE)
    }

    #[inline(always)]
    pub(super) fn is_there(self) -> bool {
        self.0 & THERE != 0
    }

    #[inline(always)]
    pub(super) fn is_hidden(self) -> bool {
        self.0 & HIDDEN != 0
    }

    pub(super) fn hidden(self) -> Entry {
        Entry(self.0 | HIDDEN)
    }

    pub(super) fn shown(self) -> Entry {
        Entry(self.0 & !HIDDEN)
    }

    /// Returns true if the entry may belong to a key of this signature, hidden or not.
    #[inline(always)]
    pub(super) fn may_be(self, signature: u64) -> bool {
        self.is_there() && (self.0 ^ signature << TAG_SHIFT) >> TAG_SHIFT == 0
    }

    #[inline(always)]
    pub(super) fn place(self) -> usize {
        (self.0 >> PLACE_SHIFT) as usize & (COPY_WORDS_MAX - 1)
    }
}

/// The state that a reader noted, to be compared later.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedState(u64);

impl ObservedState {
    /// Returns true if the bucket is complete, so that a miss is an absence.
    #[inline(always)]
    pub(super) fn is_complete(self) -> bool {
        self.0 & INCOMPLETE == 0
    }
}

/// The numbers of pending and begun writes of the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Writes(u64);

impl Writes {
    #[inline(always)]
    pub(super) fn pending(self) -> u64 {
        self.0 & PENDING
    }

    #[inline(always)]
    pub(super) fn begun(self) -> u64 {
        (self.0 & !READ_LATELY) / BEGUN_ONE
    }
}

/// The line of a bucket.
pub(super) struct Bucket<'a, W> {
    state: &'a W,
    writes: &'a W,
    entries: &'a [W; ENTRY_COUNT],
}

impl<W> Clone for Bucket<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Bucket<'_, W> {}

impl<'a, W: Word> Bucket<'a, W> {
    #[inline(always)]
    pub(super) fn of(Line(words): &'a Line<W>) -> Bucket<'a, W> {
        let [state, writes, entries @ ..] = words;
        Bucket { state, writes, entries }
    }

    /// Returns the state with which a read begins, or `None` while the bucket is being changed.
    #[inline(always)]
    pub(super) fn see(self) -> Option<ObservedState> {
        let state = self.state.load(Acquire);
        (state & LOCKED == 0).then_some(ObservedState(state))
    }

    /// Returns true if everything read since is from the same moment.
    #[inline(always)]
    pub(super) fn is_still(self, ObservedState(state): ObservedState) -> bool {
        W::fence(Acquire);
        (self.state.load(Relaxed) ^ state) / LOCKED == 0
    }

    #[inline(always)]
    pub(super) fn writes(self) -> Writes {
        Writes(self.writes.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn entry(self, i: usize) -> Entry {
        Entry(self.entries[i].load(Relaxed))
    }

    /// Returns the entries that are shown and may belong to a key of this signature: bit i for entry i. No branch
    /// depends on the entries, so a processor can proceed to the next search while the line of this one is still
    /// loading.
    #[inline(always)]
    pub(super) fn hits(self, signature: u64) -> u32 {
        let wanted = signature << TAG_SHIFT | THERE;
        let is_hit = |entry: &W| (entry.load(Relaxed) ^ wanted) & (!0 << TAG_SHIFT | THERE | HIDDEN) == 0;
        self.entries.iter().enumerate().fold(0, |hits, (i, entry)| hits | u32::from(is_hit(entry)) << i)
    }

    /// Records that entry `i` was read. It stores only if that was not recorded yet.
    #[inline(always)]
    pub(super) fn note_read(self, i: usize) {
        let bit = 1 << (READ_SHIFT + i as u32);
        if self.writes.load(Relaxed) & bit == 0 {
            self.writes.fetch_or(bit, Relaxed);
        }
    }

    #[inline(always)]
    pub(super) fn lock(self, relax: fn(&mut Backoff)) -> LockedBucket<'a, W> {
        let mut backoff = Backoff::short();
        loop {
            let state = self.state.load(Relaxed);
            if state & LOCKED == 0 && self.state.compare_exchange(state, state | LOCKED, Acquire, Relaxed).is_ok() {
                // A reader that sees any store from here on sees the lock also.
                W::fence(Release);
                return LockedBucket(self);
            }
            relax(&mut backoff);
        }
    }
}

/// A bucket that no other thread changes.
pub(super) struct LockedBucket<'a, W: Word>(Bucket<'a, W>);

impl<W: Word> LockedBucket<'_, W> {
    #[inline(always)]
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, Entry)> + '_ {
        (0..ENTRY_COUNT).map(|i| (i, self.0.entry(i))).filter(|(_, entry)| entry.is_there())
    }

    /// Returns the entry of the copy at `place`.
    pub(super) fn entry_at(&self, place: usize) -> Option<(usize, Entry)> {
        self.entries().find(|(_, entry)| entry.place() == place)
    }

    pub(super) fn set(&self, i: usize, Entry(word): Entry) {
        self.0.entries[i].store(word, Relaxed);
    }

    #[inline(always)]
    pub(super) fn writes(&self) -> Writes {
        self.0.writes()
    }

    /// Begins a write, and returns the number of begun writes, including this one.
    #[inline(always)]
    pub(super) fn begin(&self) -> u64 {
        let before = self.0.writes.load(Relaxed);
        self.0.writes.store(before + BEGUN_ONE + 1, Relaxed);
        Writes(before).begun() + 1
    }

    /// Ends a write that began: it is no longer pending.
    #[inline(always)]
    pub(super) fn end(&self) {
        self.0.writes.store(self.0.writes.load(Relaxed) - 1, Relaxed);
    }

    /// Counts a write that began and ended, so that no write in progress may show its copy.
    pub(super) fn overtake(&self) {
        self.0.writes.store(self.0.writes.load(Relaxed) + BEGUN_ONE, Relaxed);
    }

    #[cfg(test)]
    pub(super) fn pretend_alone(&self) -> u64 {
        let begun = self.writes().begun();
        self.0.writes.store(begun * BEGUN_ONE + 1, Relaxed);
        begun
    }

    pub(super) fn set_complete(&self, is_complete: bool) {
        let state = self.0.state.load(Relaxed);
        self.0.state.store(if is_complete { state & !INCOMPLETE } else { state | INCOMPLETE }, Relaxed);
    }

    /// Returns true if entry `i` was read since the last call, and clears the record.
    pub(super) fn take_read_lately(&self, i: usize) -> bool {
        let (writes, bit) = (self.0.writes.load(Relaxed), 1 << (READ_SHIFT + i as u32));
        if writes & bit != 0 {
            self.0.writes.store(writes & !bit, Relaxed);
        }
        writes & bit != 0
    }

    /// Returns an entry for another copy: an empty one, or else one that is not hidden and was not read since it
    /// was last considered.
    pub(super) fn free_entry(&self) -> Option<usize> {
        let may_go = |i: usize| !self.0.entry(i).is_hidden();
        let empty = (0..ENTRY_COUNT).find(|&i| !self.0.entry(i).is_there());
        empty.or_else(|| {
            // Each entry is considered once. The second round finds the bits cleared, except those that readers set
            // since.
            let first = self.0.writes().begun() as usize;
            let mut passed = (0..2 * ENTRY_COUNT).map(|i| (first + i) % ENTRY_COUNT).filter(|&i| may_go(i));
            passed.find(|&i| !self.take_read_lately(i)).or_else(|| (0..ENTRY_COUNT).find(|&i| may_go(i)))
        })
    }
}

impl<W: Word> Drop for LockedBucket<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        // The addition clears the lock bit, and its carry raises the count.
        let state = self.0.state.load(Relaxed);
        self.0.state.store(state.wrapping_add(LOCKED), Release);
    }
}

const _: () = assert!(INCOMPLETE < LOCKED && READ_LATELY & (BEGUN_ONE | PENDING) == 0);
const _: () = assert!(TAG_SHIFT < 64 && size_of::<Line<u64>>() == 8 * (2 + ENTRY_COUNT));
