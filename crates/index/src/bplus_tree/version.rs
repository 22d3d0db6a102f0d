//! The version of a node, which readers check and writers lock.
//!
//! ```text
//!  63                                    2     1        0
//! +--------------------------------------+----------+--------+
//! |               counter                | obsolete | locked |
//! +--------------------------------------+----------+--------+
//! ```
//!
//! A reader notes the version, reads with relaxed loads, and checks that the version is unchanged. If it is, all
//! reads belong to that version. A writer locks with a compare-exchange *from the version that it noted*, which
//! proves that nothing changed in between. Unlocking raises the counter. An unlinked node stays obsolete
//! permanently.
//!
//! # Why this is sound
//! If a reader sees a store that was made under the lock, its check sees the lock or a later version: the writer's
//! release fence is between lock and store, and the reader's acquire fence is between load and check. If the
//! version that a reader noted came from an unlock, the reader sees everything stored before that unlock (release,
//! acquire). A model checker runs these steps in the tests, and catches each broken variant that lacks a fence.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Backoff;
use word::Word;

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const COUNT_ONE: u64 = 4;

/// The version of a node.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Version<W = AtomicU64>(W);

/// A version that was neither locked nor obsolete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ObservedVersion(u64);

impl ObservedVersion {
    /// Returns the version after one change.
    pub(super) const fn next(self) -> ObservedVersion {
        ObservedVersion(self.0 + COUNT_ONE)
    }
}

impl<W: Word> Version<W> {
    /// Creates the version of an unused node.
    #[cfg(test)]
    pub(super) fn new(word: W) -> Version<W> {
        Version(word)
    }

    /// Returns the present version, unless it is locked or obsolete.
    #[inline(always)]
    pub(super) fn try_read(&self) -> Option<ObservedVersion> {
        let word = self.0.load(Ordering::Acquire);
        (word & (LOCKED | OBSOLETE) == 0).then_some(ObservedVersion(word))
    }

    /// Returns true if nothing has changed since the version was `seen`: all reads since then are consistent.
    #[inline(always)]
    pub(super) fn is(&self, seen: ObservedVersion) -> bool {
        W::fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == seen.0
    }

    /// Locks the node if it has not changed since its version was `seen`; otherwise returns `None`.
    #[inline(always)]
    pub(super) fn try_lock(&self, seen: ObservedVersion) -> Option<Lock<'_, W>> {
        if self.0.compare_exchange(seen.0, seen.0 | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return None;
        }
        W::fence(Ordering::Release);
        Some(Lock { version: self, unlocked: seen.next().0 })
    }
}

impl Version {
    /// Returns the version after waiting until it is not locked, or `None` if it is obsolete.
    #[inline(always)]
    pub(super) fn read(&self) -> Option<ObservedVersion> {
        self.try_read().or_else(|| self.read_patiently())
    }

    #[cold]
    fn read_patiently(&self) -> Option<ObservedVersion> {
        let mut backoff = Backoff::short();
        loop {
            match self.0.load(Ordering::Acquire) {
                word if word & OBSOLETE != 0 => return None,
                word if word & LOCKED == 0 => return Some(ObservedVersion(word)),
                _ => backoff.relax(),
            }
        }
    }

    /// Marks a node obsolete that was unlinked without its lock and that no thread changes.
    pub(super) fn end(&self) {
        self.0.fetch_or(OBSOLETE, Ordering::AcqRel);
    }

    /// Sets the initial version of a node that is not linked yet.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The right to change a node, until dropped.
#[derive(Debug)]
pub(super) struct Lock<'a, W: Word = AtomicU64> {
    version: &'a Version<W>,
    /// The version that the unlock stores.
    unlocked: u64,
}

impl<W: Word> Lock<'_, W> {
    /// Unlocks a node that was not changed. Everything read from it during the lock is correct.
    #[inline(always)]
    pub(super) fn release_unchanged(mut self) {
        self.unlocked -= COUNT_ONE;
    }

    /// Unlocks an unlinked node, and marks it obsolete.
    pub(super) fn release_obsolete(mut self) {
        self.unlocked |= OBSOLETE;
    }
}

impl<W: Word> Drop for Lock<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        self.version.0.store(self.unlocked, Ordering::Release);
    }
}
