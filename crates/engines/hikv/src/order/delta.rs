//! The changes that are written while the ordered index is built, to be merged when the index is loaded.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::change::Change;

/// The most changes that wait, at about 64 bytes each. Beyond it writers wait, and help with the build.
const COUNT_MAX: usize = 4 << 20;

/// The changes of all queues, those of one queue in its order.
#[derive(Debug, Default)]
pub(super) struct Delta(Mutex<VecDeque<Change>>);

impl Delta {
    /// Adds the changes; returns false, and adds none, if there are too many already and `insist` is false.
    pub(super) fn push(&self, changes: &[Change], insist: bool) -> bool {
        let mut waiting = self.0.lock();
        let has_space = insist || waiting.len() + changes.len() <= COUNT_MAX;
        if has_space {
            waiting.extend(changes);
        }
        has_space
    }

    /// Removes and returns the oldest changes, at most `count`.
    pub(super) fn take(&self, count: usize) -> Vec<Change> {
        let mut waiting = self.0.lock();
        let count = count.min(waiting.len());
        waiting.drain(..count).collect()
    }

    /// Removes and returns all changes.
    pub(super) fn take_all(&self) -> VecDeque<Change> {
        std::mem::take(&mut self.0.lock())
    }

    pub(super) fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }
}
