//! The word that records whether a thread holds a lane.
//!
//! # Lock order
//! A writer holds one lane. A thread that needs all lanes takes them in ascending order and holds none before, so
//! one of several such threads makes progress.
//!
//! # Why it is sound
//! Taking a lane is one read-modify-write that acquires; releasing it is a release store. So a holder sees
//! everything that the lane's earlier holders did, and a holder of all lanes sees everything that any writer did. A
//! model checker runs these steps (`model.rs`) and catches the broken variants.

use core::sync::atomic::Ordering;

use word::Word;

const FREE: u64 = 0;
const TAKEN: u64 = 1;

/// The state of a lane: see the module's head. All zero: free.
#[derive(Debug, Default)]
pub(crate) struct Holding<W>(pub(crate) W);

impl<W: Word> Holding<W> {
    /// Takes the lane if it is free; returns true if it did.
    #[inline]
    pub(crate) fn try_hold(&self) -> bool {
        let take = || self.0.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        self.0.load(Ordering::Relaxed) == FREE && take().is_ok()
    }

    #[inline]
    pub(crate) fn let_go(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Returns the first of `count` lanes, from the preferred one on, that `try_hold` takes.
#[inline]
pub(crate) fn hold_any(count: usize, preferred: usize, try_hold: impl Fn(usize) -> bool) -> Option<usize> {
    (0..count).map(|i| (preferred + i) % count).find(|&lane| try_hold(lane))
}
