//! What was written while the ordered index is built: merged when it is loaded.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::change::Change;

/// Changes that wait at most. At some 64 bytes each; writers wait beyond it, and help the build.
const COUNT_MAX: usize = 4 << 20;

/// The changes of all queues, those of one queue in its order.
#[derive(Debug, Default)]
pub(super) struct Delta(Mutex<VecDeque<Change>>);

impl Delta {
    /// Takes the changes; false, and none of them, if there are too many already and nobody insists.
    pub(super) fn push(&self, changes: &[Change], insist: bool) -> bool {
        let mut waiting = self.0.lock();
        let has_space = insist || waiting.len() + changes.len() <= COUNT_MAX;
        if has_space {
            waiting.extend(changes);
        }
        has_space
    }

    /// The oldest changes, at most `count`.
    pub(super) fn take(&self, count: usize) -> Vec<Change> {
        let mut waiting = self.0.lock();
        let count = count.min(waiting.len());
        waiting.drain(..count).collect()
    }

    /// All of them.
    pub(super) fn take_all(&self) -> VecDeque<Change> {
        std::mem::take(&mut self.0.lock())
    }

    pub(super) fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }
}
