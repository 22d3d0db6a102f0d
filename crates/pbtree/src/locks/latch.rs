//! The word of a lock, which many threads share or one holds exclusively.
//!
//! ```text
//!  63              24       23      22    21                     0
//! +------------------+---------+--------+-------------------------+
//! | version, 40 bits |exclusive| wanted | number of sharers       |
//! +------------------+---------+--------+-------------------------+
//! ```
//!
//! A thread that waits for exclusive access sets *wanted*. No further thread then begins to share the lock; otherwise
//! readers could keep writers out forever. The thread that gets exclusive access clears *wanted*; other waiting
//! threads set it again.
//!
//! A thread increments the *version* when it releases exclusive access. So a thread that shares the lock again and
//! finds the same version sees unchanged data: no thread had exclusive access in between. A version repeats after
//! 2^40 exclusive locks.
//!
//! # Why this is sound
//! Every unlocking is a release and every locking an acquire of one word that is changed only by read-modify-writes.
//! So a thread that locks sees everything that earlier unlocking threads have done. A model checker runs these steps
//! (`model.rs`) and catches the broken variants.

use core::sync::atomic::Ordering;

use pmem::Backoff;
use word::Word;

use crate::Error;

/// More threads than a system has can share a lock without reaching this bit.
const WANTED: u64 = 1 << 22;
const EXCLUSIVE: u64 = 1 << 23;
const VERSION: u64 = 1 << 24;
/// The version bits of a word.
const VERSION_BITS: u64 = !(VERSION - 1);

/// The mode in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// The choice to wait for a lock or to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitPolicy {
    Wait,
    Try,
}

/// A lock word; see the module's head. All zero: free.
#[derive(Debug, Default)]
pub(super) struct Latch<W>(pub(super) W);

impl<W: Word> Latch<W> {
    /// Locks if that is possible immediately.
    #[inline]
    pub(super) fn try_lock(&self, mode: Mode) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let replaced = |new| self.0.compare_exchange_weak(word, new, Ordering::Acquire, Ordering::Relaxed).is_ok();
        match mode {
            Mode::Shared => word & (EXCLUSIVE | WANTED) == 0 && replaced(word + 1),
            Mode::Exclusive => word & !(WANTED | VERSION_BITS) == 0 && replaced(word & VERSION_BITS | EXCLUSIVE),
        }
    }

    /// Locks, or returns [`Error::WouldWait`] if the caller does not wait.
    #[inline]
    pub(super) fn lock(&self, mode: Mode, wait_policy: WaitPolicy) -> Result<(), Error> {
        let mut backoff = Backoff::short();
        while !self.try_lock(mode) {
            if wait_policy == WaitPolicy::Try {
                return Err(Error::WouldWait);
            }
            if mode == Mode::Exclusive {
                self.want();
            }
            backoff.relax();
        }
        Ok(())
    }

    /// Records that the caller waits for exclusive access.
    pub(super) fn want(&self) {
        self.0.fetch_or(WANTED, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn unlock(&self, mode: Mode) {
        match mode {
            Mode::Shared => self.0.fetch_sub(1, Ordering::Release),
            Mode::Exclusive => self.0.fetch_add(VERSION - EXCLUSIVE, Ordering::Release),
        };
    }

    /// Returns the version of the guarded data. The caller shares the lock, so the version does not change.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & VERSION_BITS
    }
}
