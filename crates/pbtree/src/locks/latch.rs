//! The word of a lock: many share it, or one has it.
//!
//! ```text
//!  63        62     61                                          0
//! +---------+------+--------------------------------------------+
//! |exclusive|wanted| how many share it                          |
//! +---------+------+--------------------------------------------+
//! ```
//!
//! Who waits to have it alone says so (*wanted*); then nobody begins to share it, or readers could keep writers out for ever. Who
//! gets it alone takes that back; others who wait for the same say it again.
//!
//! # Why that is sound
//! Every unlocking is a release, every locking an acquire, of one word that is only changed by read-modify-writes: so who locks
//! sees what all who unlocked before have done. A model checker runs these steps (`model.rs`), and catches the twins.

use core::sync::atomic::{AtomicU64, Ordering};

const EXCLUSIVE: u64 = 1 << 63;
const WANTED: u64 = 1 << 62;

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// The word, or what a model checker puts in its place.
pub(super) trait Word {
    fn load(&self) -> u64;
    /// An acquire, where it succeeds. It may fail for nothing.
    fn replace(&self, old: u64, new: u64) -> bool;
    fn raise(&self, bits: u64);
    /// A release.
    fn subtract(&self, number: u64);
    /// A release.
    fn lower(&self, bits: u64);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn replace(&self, old: u64, new: u64) -> bool {
        self.compare_exchange_weak(old, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn raise(&self, bits: u64) {
        self.fetch_or(bits, Ordering::Relaxed);
    }

    #[inline(always)]
    fn subtract(&self, number: u64) {
        self.fetch_sub(number, Ordering::Release);
    }

    #[inline(always)]
    fn lower(&self, bits: u64) {
        self.fetch_and(!bits, Ordering::Release);
    }
}

/// See the module's head. All zero: free.
#[derive(Debug, Default)]
pub(super) struct Latch<W>(pub(super) W);

impl<W: Word> Latch<W> {
    /// Locks if that is possible now.
    #[inline]
    pub(super) fn try_lock(&self, mode: Mode) -> bool {
        let word = self.0.load();
        match mode {
            Mode::Shared => word & (EXCLUSIVE | WANTED) == 0 && self.0.replace(word, word + 1),
            Mode::Exclusive => word & !WANTED == 0 && self.0.replace(word, EXCLUSIVE),
        }
    }

    /// The caller waits to have it alone.
    pub(super) fn want(&self) {
        self.0.raise(WANTED);
    }

    #[inline]
    pub(super) fn unlock(&self, mode: Mode) {
        match mode {
            Mode::Shared => self.0.subtract(1),
            Mode::Exclusive => self.0.lower(EXCLUSIVE),
        }
    }
}
