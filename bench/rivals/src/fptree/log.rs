//! Micro-logs: one line for each change of the list of leaves in progress.
//!
//! ```text
//! +0  the leaf that changes; bit 0: it is unlinked, else it is split; 0: no change is in progress
//! +8  the new leaf of a split, or the leaf before the one that is unlinked
//! ```
//!
//! The first word is stored last, in the same line, so that a crash never leaves it with another change's second word.

use std::sync::atomic::{AtomicU64, Ordering};

use heap::layout::ENGINE_AREA;
use pmem::{Backoff, LINE_BYTES, Medium, Offset};

/// A log for each thread that changes the list at the same time.
const LOG_COUNT: u64 = 64;
const UNLINKS: u64 = 1;

/// A change of the list of leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// `leaf` is split: `new` becomes its successor.
    Split { leaf: Offset, new: Offset },
    /// `leaf`, the successor of `before`, leaves the list.
    Unlink { leaf: Offset, before: Offset },
}

/// The logs of a tree.
#[derive(Default)]
pub(super) struct Logs {
    /// A bit for each log in use.
    used: AtomicU64,
}

/// A log in use.
pub(super) struct Log<'a> {
    logs: &'a Logs,
    number: u64,
}

fn start(number: u64) -> Offset {
    ENGINE_AREA.plus((1 + number) * LINE_BYTES)
}

impl Logs {
    /// Takes a free log; waits if there is none.
    pub(super) fn take(&self) -> Log<'_> {
        let mut backoff = Backoff::short();
        loop {
            let used = self.used.load(Ordering::Relaxed);
            let number = u64::from(used.trailing_ones());
            if number == LOG_COUNT {
                backoff.relax();
            } else if self
                .used
                .compare_exchange_weak(used, used | 1 << number, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Log { logs: self, number };
            }
        }
    }
}

impl Log<'_> {
    /// Records the change and flushes it.
    pub(super) fn begin<M: Medium>(&self, medium: &M, change: Change) {
        let (first, second) = match change {
            Change::Split { leaf, new } => (leaf.0, new.0),
            Change::Unlink { leaf, before } => (leaf.0 | UNLINKS, before.0),
        };
        let at = start(self.number);
        medium.store(at.plus(8), second, Ordering::Release);
        medium.store(at, first, Ordering::Release);
        medium.flush(at.span(16));
    }

    /// Ends the change, and flushes that.
    pub(super) fn end<M: Medium>(&self, medium: &M) {
        reset(medium, self.number);
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        self.logs.used.fetch_and(!(1 << self.number), Ordering::Release);
    }
}

fn reset<M: Medium>(medium: &M, number: u64) {
    medium.store(start(number), 0, Ordering::Release);
    medium.flush(start(number).span(8));
}

/// Calls `complete` with every change that a crash has interrupted, and ends it afterwards.
pub(super) fn replay<M: Medium, E>(medium: &M, mut complete: impl FnMut(Change) -> Result<(), E>) -> Result<(), E> {
    for number in 0..LOG_COUNT {
        let [first, second] = [0, 8].map(|at| medium.load(start(number).plus(at), Ordering::Acquire));
        let (leaf, other) = (Offset(first & !UNLINKS), Offset(second));
        if leaf.is_null() {
            continue;
        }
        let is_unlink = first & UNLINKS != 0;
        complete(if is_unlink { Change::Unlink { leaf, before: other } } else { Change::Split { leaf, new: other } })?;
        medium.order();
        reset(medium, number);
    }
    medium.order();
    Ok(())
}
