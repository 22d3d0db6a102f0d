//! The sweep after opening, in the background. Where damage ends the sweep, the free space stays unknown until the store is cleared or opened again: no
//! step sweeps once more, and none merges, since a merge needs the free space. All else goes on.

use std::sync::atomic::Ordering;

use engine::Error;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::from_tree;

impl<M: Medium, D: Dram> Ink<M, D> {
    pub(crate) fn sweep_met_damage(&self) -> bool {
        self.sweep_met_damage.load(Ordering::Relaxed) && !self.tree.heap().is_swept()
    }

    /// Sweeps, unless that was done; whether the free space is known.
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
