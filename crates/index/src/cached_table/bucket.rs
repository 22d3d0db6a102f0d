//! A bucket: its state, how many writes began and are pending, and the entries.
//!
//! ```text
//! +0   state    bits 0-5 the entry was read lately, 6 incomplete, 8 locked, 9- how often it was unlocked
//! +8   writes   bits 0-15 pending, 16- begun
//! +16  entry 0  bit 0 there, 1 hidden, 2-35 place of the copy, in words; 36-63 the lowest bits of its signature
//! ...  entry 5
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pmem::Backoff;
use word::Word;

use super::lines::Line;

pub(super) const ENTRY_COUNT: usize = 6;
const READ_LATELY: u64 = (1 << ENTRY_COUNT) - 1;
const INCOMPLETE: u64 = 1 << 6;
const LOCKED: u64 = 1 << 8;
const BEGUN_ONE: u64 = 1 << 16;
const PENDING: u64 = BEGUN_ONE - 1;
const THERE: u64 = 1;
const HIDDEN: u64 = 2;
const PLACE_SHIFT: u32 = 2;
const PLACE_BITS: u32 = 34;
const TAG_SHIFT: u32 = PLACE_SHIFT + PLACE_BITS;

/// The most words that copies can have: an entry has room for no greater place.
pub(super) const COPY_WORDS_MAX: usize = 1 << PLACE_BITS;

/// An entry's word.
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

    /// Whether it may be of a key of this signature, hidden or not.
    #[inline(always)]
    pub(super) fn may_be(self, signature: u64) -> bool {
        self.is_there() && (self.0 ^ signature << TAG_SHIFT) >> TAG_SHIFT == 0
    }

    #[inline(always)]
    pub(super) fn place(self) -> usize {
        (self.0 >> PLACE_SHIFT) as usize & (COPY_WORDS_MAX - 1)
    }
}

/// What a reader compares: the state as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedState(u64);

impl ObservedState {
    /// A miss is an absence, as far as the bucket tells.
    #[inline(always)]
    pub(super) fn is_complete(self) -> bool {
        self.0 & INCOMPLETE == 0
    }
}

/// Writes of the bucket: how many are pending, and have begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Writes(u64);

impl Writes {
    #[inline(always)]
    pub(super) fn pending(self) -> u64 {
        self.0 & PENDING
    }

    #[inline(always)]
    pub(super) fn begun(self) -> u64 {
        self.0 / BEGUN_ONE
    }
}

/// A bucket's line.
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

    /// What a look begins with; `None` while the bucket is being changed.
    #[inline(always)]
    pub(super) fn see(self) -> Option<ObservedState> {
        let state = self.state.load(Acquire);
        (state & LOCKED == 0).then_some(ObservedState(state))
    }

    /// Whether all that was read since is of one moment.
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

    /// Which entries are shown and may be of a key of this signature: bit i for entry i. No branch depends on what they are, so that a
    /// processor is at the next search while this one's line is still on its way.
    #[inline(always)]
    pub(super) fn hits(self, signature: u64) -> u32 {
        let wanted = signature << TAG_SHIFT | THERE;
        let is_hit = |entry: &W| (entry.load(Relaxed) ^ wanted) & (!0 << TAG_SHIFT | THERE | HIDDEN) == 0;
        self.entries.iter().enumerate().fold(0, |hits, (i, entry)| hits | u32::from(is_hit(entry)) << i)
    }

    /// Says that entry `i` was read; a store only where that is news.
    #[inline(always)]
    pub(super) fn note_read(self, ObservedState(state): ObservedState, i: usize) {
        if state & 1 << i == 0 {
            self.state.fetch_or(1 << i, Relaxed);
        }
    }

    #[inline(always)]
    pub(super) fn lock(self, relax: fn(&mut Backoff)) -> LockedBucket<'a, W> {
        let mut backoff = Backoff::short();
        loop {
            let state = self.state.load(Relaxed);
            if state & LOCKED == 0 && self.state.compare_exchange(state, state | LOCKED, Acquire, Relaxed).is_ok() {
                // A reader that sees any store from here on sees the lock, too.
                W::fence(Release);
                return LockedBucket(self);
            }
            relax(&mut backoff);
        }
    }
}

/// A bucket that nobody else changes.
pub(super) struct LockedBucket<'a, W: Word>(Bucket<'a, W>);

impl<W: Word> LockedBucket<'_, W> {
    #[inline(always)]
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, Entry)> + '_ {
        (0..ENTRY_COUNT).map(|i| (i, self.0.entry(i))).filter(|(_, entry)| entry.is_there())
    }

    /// The entry of the copy at `place`.
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

    /// A write begins; how many have, with it.
    #[inline(always)]
    pub(super) fn begin(&self) -> u64 {
        let before = self.0.writes.load(Relaxed);
        self.0.writes.store(before + BEGUN_ONE + 1, Relaxed);
        Writes(before).begun() + 1
    }

    /// A write that began is pending no more.
    #[inline(always)]
    pub(super) fn end(&self) {
        self.0.writes.store(self.0.writes.load(Relaxed) - 1, Relaxed);
    }

    /// As if a write had begun and ended: none that is under way counts.
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
        if is_complete {
            self.0.state.fetch_and(!INCOMPLETE, Relaxed);
        } else {
            self.0.state.fetch_or(INCOMPLETE, Relaxed);
        }
    }

    /// Whether entry `i` was read since this was last asked.
    pub(super) fn take_read_lately(&self, i: usize) -> bool {
        let was_read = self.0.state.load(Relaxed) & 1 << i != 0;
        if was_read {
            self.0.state.fetch_and(!(1 << i), Relaxed);
        }
        was_read
    }

    /// An entry for another copy: an empty one, else one that is not hidden and was not read since it was last passed over.
    pub(super) fn free_entry(&self) -> Option<usize> {
        let may_go = |i: usize| !self.0.entry(i).is_hidden();
        let empty = (0..ENTRY_COUNT).find(|&i| !self.0.entry(i).is_there());
        empty.or_else(|| {
            // Each is passed over once; the second round finds the bits off, but for those of readers since.
            let first = self.0.writes().begun() as usize;
            let mut passed = (0..2 * ENTRY_COUNT).map(|i| (first + i) % ENTRY_COUNT).filter(|&i| may_go(i));
            passed.find(|&i| !self.take_read_lately(i)).or_else(|| (0..ENTRY_COUNT).find(|&i| may_go(i)))
        })
    }
}

impl<W: Word> Drop for LockedBucket<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        // The lock's bit goes, and its carry is counted; bits that readers set meanwhile stay.
        self.0.state.fetch_add(LOCKED, Release);
    }
}

const _: () = assert!(READ_LATELY & (INCOMPLETE | LOCKED) == 0 && INCOMPLETE < LOCKED);
const _: () = assert!(TAG_SHIFT < 64 && size_of::<Line<u64>>() == 8 * (2 + ENTRY_COUNT));
