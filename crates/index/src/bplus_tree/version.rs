//! A node's version, which readers check and writers lock.
//!
//! ```text
//!  63                                    2     1        0
//! +--------------------------------------+----------+--------+
//! |               counter                | obsolete | locked |
//! +--------------------------------------+----------+--------+
//! ```
//!
//! A reader notes the version, reads whatever it needs by relaxed loads, and checks that the version is still the same:
//! then all that it read is of that version. A writer locks by compare-exchange *from the version it noted*, which proves
//! that nothing changed in between; unlocking counts on. A node that was unlinked is obsolete for good.
//!
//! # Why that is sound
//! A reader that sees a store made under the lock sees, at the check, the lock or what came after it: the writer's
//! release fence stands between lock and store, the reader's acquire fence between load and check. A reader whose noted
//! version came from an unlock sees everything stored before that unlock (release, acquire). A model checker runs these
//! steps below, and catches each twin that lacks a fence.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Backoff;
use word::Word;

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const COUNT_ONE: u64 = 4;

/// A node's version.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Version<W = AtomicU64>(W);

/// A version that was neither locked nor obsolete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ObservedVersion(u64);

impl ObservedVersion {
    /// The version after one change.
    pub(super) const fn next(self) -> ObservedVersion {
        ObservedVersion(self.0 + COUNT_ONE)
    }
}

impl<W: Word> Version<W> {
    /// A version of nothing yet.
    #[cfg(test)]
    pub(super) fn new(word: W) -> Version<W> {
        Version(word)
    }

    /// The version now, unless it is locked or obsolete.
    #[inline(always)]
    pub(super) fn try_read(&self) -> Option<ObservedVersion> {
        let word = self.0.load(Ordering::Acquire);
        (word & (LOCKED | OBSOLETE) == 0).then_some(ObservedVersion(word))
    }

    /// True if nothing changed since the version was `seen`: what was read since then belongs together.
    #[inline(always)]
    pub(super) fn is(&self, seen: ObservedVersion) -> bool {
        W::fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == seen.0
    }

    /// Locks what has not changed since the version was `seen`; `None` if it has.
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
    /// The version, once it is not locked; `None` if it is obsolete.
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

    /// The version of a node that was unlinked without its lock, and that nobody changes.
    pub(super) fn end(&self) {
        self.0.fetch_or(OBSOLETE, Ordering::AcqRel);
    }

    /// A fresh version for a node that is not linked yet.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The right to change a node, until dropped.
#[derive(Debug)]
pub(super) struct Lock<'a, W: Word = AtomicU64> {
    version: &'a Version<W>,
    /// The version to leave behind.
    unlocked: u64,
}

impl<W: Word> Lock<'_, W> {
    /// Unlocks a node that was not changed: what was read from it meanwhile is right.
    #[inline(always)]
    pub(super) fn release_unchanged(mut self) {
        self.unlocked -= COUNT_ONE;
    }

    /// Unlocks a node that was unlinked, for good.
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
