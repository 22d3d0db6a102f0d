//! Freeing what was retired, and holding up writers while too much waits (`garbage`).

use pmem::Medium;

use crate::{HiKv, Memory};

/// Garbage of readers who have moved on is free after so many looks.
const LOOK_COUNT: usize = 3;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Comes before a write, once, that leaves garbage. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn bound_garbage(&self) {
        if self.limbo.is_over() {
            self.hold_up();
        }
    }

    #[cold]
    fn hold_up(&self) {
        let is_free = || {
            self.collect();
            !self.limbo.is_over()
        };
        if !epoch::is_pinned() && !(0..LOOK_COUNT).any(|_| is_free()) {
            self.garbage.hold_up(self.limbo.bytes());
        }
    }

    /// Frees what no reader can reach any more; true if there was any.
    pub(crate) fn collect(&self) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx()));
        self.cx().collect() || cleared
    }

    /// True while readers may keep something.
    pub(crate) fn has_garbage(&self) -> bool {
        !self.limbo.is_empty() || !self.cleared.is_empty()
    }
}
