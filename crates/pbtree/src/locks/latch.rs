//! The word of a lock: many share the lock, or one has it.
//!
//! ```text
//!  63              24       23      22    21                     0
//! +------------------+---------+--------+-------------------------+
//! | version, 40 bits |exclusive| wanted | how many share it       |
//! +------------------+---------+--------+-------------------------+
//! ```
//!
//! A thread that waits to have it alone sets *wanted*; then no other begins to share it, or readers could keep writers out for
//! ever. The thread that gets it alone clears *wanted*; others that wait for the same set it again.
//!
//! A thread that had the lock alone raises the *version* with the unlocking. So a thread that shares the lock again and finds the same version
//! sees what was there then: nobody had the lock alone meanwhile. A version comes again after 2^40 of these.
//!
//! # Why that is sound
//! Every unlocking is a release, every locking an acquire, of one word that is only changed by read-modify-writes: so a thread that
//! locks sees what all threads that unlocked before have done. A model checker runs these steps (`model.rs`), and catches the
//! twins.

use core::sync::atomic::Ordering;

use word::Word;

/// More than a system has threads share no lock.
const WANTED: u64 = 1 << 22;
const EXCLUSIVE: u64 = 1 << 23;
const VERSION: u64 = 1 << 24;
/// Of a word its version.
const VERSION_BITS: u64 = !(VERSION - 1);

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// See the module's head. All zero: free.
#[derive(Debug, Default)]
pub(super) struct Latch<W>(pub(super) W);

impl<W: Word> Latch<W> {
    /// Locks if that is possible now.
    #[inline]
    pub(super) fn try_lock(&self, mode: Mode) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let replaced = |new| self.0.compare_exchange_weak(word, new, Ordering::Acquire, Ordering::Relaxed).is_ok();
        match mode {
            Mode::Shared => word & (EXCLUSIVE | WANTED) == 0 && replaced(word + 1),
            Mode::Exclusive => word & !(WANTED | VERSION_BITS) == 0 && replaced(word & VERSION_BITS | EXCLUSIVE),
        }
    }

    /// The caller waits to have it alone.
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

    /// Which state of what it guards it is; the caller shares the lock, so that this stays.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & VERSION_BITS
    }
}
