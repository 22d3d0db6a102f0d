//! Making and opening a store.

use std::sync::atomic::AtomicBool;

use engine::{Clock, Compaction, OpenError, Reaper, Verify};
use heap::{HeapError, Parameters};
use pbtree::{FreeImmediately, Options, Tree};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::counted::Counted;
use crate::merging::Merging;

impl<M: Medium, D: Dram + Clone> Ink<M, D> {
    /// Makes a store in an empty region. `parameters` have the number of lanes: writers that can be under way at once.
    ///
    /// # Errors
    /// [`OpenError`]: there is no room, or the parameters are wrong.
    pub fn format(medium: M, dram: D, parameters: &Parameters, options: Options) -> Result<Ink<M, D>, OpenError> {
        Ok(Ink::of(Tree::format(medium, parameters, options, dram, FreeImmediately)?))
    }

    /// Opens the store of a region, after a clean close or a crash alike; free space is found in the background
    /// ([`engine::Engine::step`]). A store keeps the order that it was made with.
    ///
    /// # Errors
    /// [`OpenError`]: what is wrong with the region, and where.
    pub fn open(medium: M, dram: D, options: Options) -> Result<Ink<M, D>, OpenError> {
        let tree = Tree::open(medium, options, dram, FreeImmediately)?;
        // Whatever seemed right about zeros that stand for what could not be read.
        tree.medium().check_lost_ranges().map_err(HeapError::from)?;
        Ok(Ink::of(tree))
    }

    fn of(tree: Tree<M, D, FreeImmediately>) -> Ink<M, D> {
        Ink {
            merging: Merging::of(tree.options().order),
            tree,
            clock: Clock::default(),
            verify: Verify::Nothing,
            reaper: Reaper::default(),
            compaction: Compaction::above(None),
            counted: Counted::default(),
            sweep_met_damage: AtomicBool::new(false),
        }
    }
}
