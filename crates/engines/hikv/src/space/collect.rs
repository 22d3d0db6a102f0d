//! Freeing what was retired, and slowing writers while too much waits (`engine::garbage`).

use pmem::Medium;

use crate::{HiKv, Memory};

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Comes before a write, once, that leaves garbage. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn bound_garbage(&self) {
        if self.limbo.is_over() {
            self.hold_up();
        }
    }

    /// Takes the engine alone: an address that is passed here would keep a register for the whole write.
    #[cold]
    #[inline(never)]
    fn hold_up(&self) {
        self.garbage.throttle(&self.limbo, || _ = self.collect());
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
