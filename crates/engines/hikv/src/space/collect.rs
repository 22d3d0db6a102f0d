//! Frees retired items, and slows writers while too much garbage waits (`engine::garbage`).

use pmem::Medium;

use crate::{HiKv, Memory};

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Slows a write that leaves garbage, if there is too much. Called once before the write, without a lock.
    #[inline(always)]
    pub(crate) fn bound_garbage(&self) {
        if self.limbo.is_over() {
            self.hold_up();
        }
    }

    /// Has only the engine as parameter: the address of another one would occupy a register during the whole write.
    #[cold]
    #[inline(never)]
    fn hold_up(&self) {
        self.garbage.throttle(&self.limbo, || _ = self.collect());
    }

    /// Frees garbage that no reader can reach any more; returns true if there was any.
    pub(crate) fn collect(&self) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx()));
        self.cx().collect() || cleared
    }

    /// Returns true while readers may keep garbage.
    pub(crate) fn has_garbage(&self) -> bool {
        !self.limbo.is_empty() || !self.cleared.is_empty()
    }
}
