//! The sweep after opening, in the background. Where it meets damage the free space stays unknown until the store is opened again: no step looks
//! for it once more, and none merges, which needs it. All else goes on.

use std::sync::atomic::Ordering;

use engine::Error;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::told;

impl<M: Medium, D: Dram> Ink<M, D> {
    pub(crate) fn sweep_met_damage(&self) -> bool {
        self.sweep_met_damage.load(Ordering::Relaxed)
    }

    /// Sweeps, unless that was done; whether the free space is known.
    pub(crate) fn sweep_once(&self) -> Result<bool, Error> {
        if self.sweep_met_damage() {
            return Ok(false);
        }
        match self.tree.sweep().map_err(told) {
            Err(Error::Corrupt { .. }) => {
                self.sweep_met_damage.store(true, Ordering::Relaxed);
                Ok(false)
            }
            swept => swept.map(|()| true),
        }
    }
}
