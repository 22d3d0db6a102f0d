//! The sweep after opening, in the background. If damage ends the sweep, the free space stays unknown until the store
//! is cleared or opened again: no step sweeps again, and none merges, because a merge needs the free space.
//! Everything else continues.

use std::sync::atomic::Ordering;

use engine::Error;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::from_tree;

impl<M: Medium, D: Dram> Ink<M, D> {
    pub(crate) fn sweep_met_damage(&self) -> bool {
        self.sweep_met_damage.load(Ordering::Relaxed) && !self.tree.heap().is_swept()
    }

    /// Sweeps unless that was done. Returns true if the free space is known.
    pub(crate) fn sweep_once(&self) -> Result<bool, Error> {
        if self.sweep_met_damage() {
            return Ok(false);
        }
        match self.tree.sweep().map_err(from_tree) {
            Err(Error::Corrupt { .. }) => {
                self.sweep_met_damage.store(true, Ordering::Relaxed);
                Ok(false)
            }
            swept => swept.map(|()| true),
        }
    }
}
