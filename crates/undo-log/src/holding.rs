//! Whether a thread holds a lane.
//!
//! # Lock order
//! A writer holds one lane. A thread that wants all takes them in ascending order and holds none before, so of several such threads one
//! gets on.
//!
//! # Why that is sound
//! Taking is one read-modify-write that acquires, letting go is a release: so a holder sees all that the lane's holders before it have done, and
//! a holder of all lanes sees all that any writer has done. A model checker runs these steps (`model.rs`), and catches the twins.

use core::sync::atomic::Ordering;

use word::Word;

const FREE: u64 = 0;
const TAKEN: u64 = 1;

/// See the module's head. All zero: free.
#[derive(Debug, Default)]
pub(crate) struct Holding<W>(pub(crate) W);

impl<W: Word> Holding<W> {
    /// Takes the lane if it is free.
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

/// The first of `count` lanes, from the preferred one on, that `try_hold` gets.
#[inline]
pub(crate) fn hold_any(count: usize, preferred: usize, try_hold: impl Fn(usize) -> bool) -> Option<usize> {
    (0..count).map(|i| (preferred + i) % count).find(|&lane| try_hold(lane))
}
