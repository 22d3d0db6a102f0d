//! The leaf, in persistent memory: entries are appended and never changed.
//!
//! ```text
//! +0   number of entries     +8  next leaf, or 0     +16  version and lock: void after a crash
//! +64  entries: key 16, position of the record 8; a deleted key has the mark DELETED and no record
//! ```
//!
//! The newest entry of a key decides. An entry counts once the number includes it.

use std::sync::atomic::Ordering;

use index::Position;
use pmem::{Backoff, LINE_BYTES, Medium, Offset};

use crate::canary;
use crate::key::Key;
use crate::tree::ComparisonCounter;
use crate::version::Version;

/// The most entries of a leaf: 4 KiB.
pub(super) const ENTRY_COUNT_MAX: u64 = 168;

const COUNT: u64 = 0;
const NEXT: u64 = 8;
const VERSION: u64 = 16;
const ENTRIES: u64 = 64;
const ENTRY_BYTES: u64 = 24;

/// Returns the length of a leaf of `entry_count` entries, in full lines.
pub(super) const fn leaf_bytes(entry_count: u64) -> u64 {
    (ENTRIES + entry_count * ENTRY_BYTES).next_multiple_of(LINE_BYTES)
}

/// A key and its record, or the absence of the key.
pub(super) type Entry = (Key, Position);

/// A leaf.
#[derive(Debug)]
pub(super) struct AppendLeaf<'a, M> {
    medium: &'a M,
    pub(super) at: Offset,
}

impl<M> Clone for AppendLeaf<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for AppendLeaf<'_, M> {}

impl<'a, M: Medium> AppendLeaf<'a, M> {
    #[inline(always)]
    pub(super) fn new(medium: &'a M, at: Offset) -> AppendLeaf<'a, M> {
        AppendLeaf { medium, at }
    }

    #[inline(always)]
    fn load(self, at: u64) -> u64 {
        self.medium.load(self.at.plus(at), Ordering::Acquire)
    }

    #[inline(always)]
    fn store(self, at: u64, word: u64) {
        self.medium.store(self.at.plus(at), word, Ordering::Release);
    }

    #[inline(always)]
    fn version(self) -> Version {
        Version(self.load(VERSION))
    }

    /// Sets the version of a leaf that no other thread uses. It is never flushed on purpose.
    pub(super) fn set_version(self, version: Version) {
        self.store(VERSION, version.0);
    }

    pub(super) fn is_locked(self) -> bool {
        self.version().is_locked()
    }

    /// Locks the leaf; waits while another thread has it locked. Returns false if it is not part of the tree any more.
    #[inline(always)]
    pub(super) fn lock(self) -> bool {
        let mut backoff = Backoff::short();
        loop {
            let version = self.version();
            if version.is_stable() && self.try_lock(version) {
                return true;
            }
            if !version.is_stable() && !version.is_locked() {
                return false;
            }
            backoff.relax();
        }
    }

    #[inline(always)]
    fn try_lock(self, version: Version) -> bool {
        self.medium.compare_exchange(self.at.plus(VERSION), version.0, version.locked().0).is_ok()
    }

    /// Locks the leaf if it is part of the tree and not locked.
    pub(super) fn try_lock_now(self) -> bool {
        let version = self.version();
        version.is_stable() && self.try_lock(version)
    }

    #[inline(always)]
    pub(super) fn unlock(self) {
        self.set_version(self.version().unlocked());
    }

    /// Unlocks a leaf that is not part of the tree any more.
    pub(super) fn unlock_obsolete(self) {
        self.set_version(self.version().obsolete());
    }

    #[inline(always)]
    pub(super) fn count(self) -> u64 {
        self.load(COUNT)
    }

    pub(super) fn next(self) -> Offset {
        Offset(self.load(NEXT))
    }

    /// Changes the next leaf and flushes the word.
    pub(super) fn set_next(self, next: Offset) {
        self.store(NEXT, next.0);
        self.medium.flush(self.at.plus(NEXT).span(8));
    }

    /// Prefetches the head; the newest entries are known only then.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        self.medium.prefetch_line(self.at);
    }

    /// Prefetches everything, for a scan.
    pub(super) fn prefetch_all(self, entry_count: u64) {
        for at in (0..leaf_bytes(entry_count)).step_by(LINE_BYTES as usize) {
            self.medium.prefetch_line(self.at.plus(at));
        }
    }

    #[inline(always)]
    pub(super) fn entry(self, number: u64) -> Entry {
        let at = ENTRIES + number * ENTRY_BYTES;
        (self.key(number), Position::from_word(self.load(at + 16)))
    }

    #[inline(always)]
    fn key(self, number: u64) -> Key {
        let at = ENTRIES + number * ENTRY_BYTES;
        Key::of_words([self.load(at), self.load(at + 8)])
    }

    pub(super) fn entries(self) -> impl DoubleEndedIterator<Item = Entry> {
        (0..self.count()).map(move |number| self.entry(number))
    }

    /// Returns the record of `key`: from the newest entry back, the first match decides.
    #[inline(always)]
    pub(super) fn find(self, key: Key, comparisons: &impl ComparisonCounter) -> Option<Position> {
        for number in (0..self.count()).rev() {
            comparisons.compared();
            if self.key(number) == key {
                return Some(self.entry(number).1).filter(|position| !position.is_deleted());
            }
        }
        None
    }

    fn write(self, number: u64, (key, position): Entry) {
        let at = ENTRIES + number * ENTRY_BYTES;
        let [high, low] = key.words();
        self.store(at, high);
        self.store(at + 8, low);
        self.store(at + 16, position.word());
    }

    /// Appends to a locked leaf that is not full: the entry, ordered; then the number, flushed.
    #[inline(always)]
    pub(super) fn append(self, entry: Entry) {
        let count = self.count();
        self.write(count, entry);
        self.medium.flush(self.at.plus(ENTRIES + count * ENTRY_BYTES).span(ENTRY_BYTES));
        self.medium.order_unless(canary::NV_TREE_COUNT_BEFORE_ENTRY);
        self.store(COUNT, count + 1);
        self.medium.flush(self.at.plus(COUNT).span(8));
    }

    /// Makes a leaf of new memory, and flushes it.
    pub(super) fn initialise(self, entries: &[Entry], next: Offset, version: Version) {
        for (number, entry) in (0..).zip(entries) {
            self.write(number, *entry);
        }
        self.store(COUNT, entries.len() as u64);
        self.store(NEXT, next.0);
        self.set_version(version);
        self.medium.flush(self.at.span(leaf_bytes(entries.len() as u64)));
    }
}
