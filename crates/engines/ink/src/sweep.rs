//! The sweep after opening, in the background. If damage ends the sweep, the free space stays unknown until the store
//! is cleared or opened again: no step sweeps again, and none merges, because a merge needs the free space.
//! Everything else continues.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::Error;
use pbtree::{FreeImmediately, Tree};
use pmem::{Dram, Medium};

use crate::error::from_tree;

/// The state of the sweep.
#[derive(Default)]
pub(crate) struct Sweep {
    met_damage: AtomicBool,
}

impl Sweep {
    pub(crate) fn met_damage<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> bool {
        self.met_damage.load(Ordering::Relaxed) && !tree.heap().is_swept()
    }

    /// Sweeps unless that was done. Returns true if the free space is known.
    pub(crate) fn run<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> Result<bool, Error> {
        if self.met_damage(tree) {
            return Ok(false);
        }
        match tree.sweep().map_err(from_tree) {
            Err(Error::Corrupt { .. }) => {
                self.met_damage.store(true, Ordering::Relaxed);
                Ok(false)
            }
            swept => swept.map(|()| true),
        }
    }
}
