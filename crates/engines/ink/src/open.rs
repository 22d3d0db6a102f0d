//! Creating and opening a store.

use engine::{Compaction, OpenError};
use heap::{HeapError, Parameters};
use pbtree::{FreeImmediately, Options, Tree};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::counted::Counted;
use crate::items::Items;
use crate::sweep::Sweep;
use crate::writer::Writer;

impl<M: Medium, D: Dram + Clone> Ink<M, D> {
    /// Creates a store in an empty region. `parameters` hold the number of lanes, which is the number of concurrent
    /// writers.
    ///
    /// # Errors
    /// [`OpenError`] if there is no space or a parameter is invalid.
    pub fn format(medium: M, dram: D, parameters: &Parameters, options: Options) -> Result<Ink<M, D>, OpenError> {
        Ok(Ink::of(Tree::format(medium, parameters, options, dram, FreeImmediately)?))
    }

    /// Opens the store of a region, after a clean close or a crash. Free space is found in the background
    /// ([`engine::Maintenance::step`]). A store keeps the order that it was made with.
    ///
    /// # Errors
    /// [`OpenError`] if the region is damaged, of another engine, or not supported.
    pub fn open(medium: M, dram: D, options: Options) -> Result<Ink<M, D>, OpenError> {
        let tree = Tree::open(medium, options, dram, FreeImmediately)?;
        // Ranges that could not be read were replaced by zeros, which may have passed the checks above.
        tree.medium().check_lost_ranges().map_err(HeapError::from)?;
        Ok(Ink::of(tree))
    }

    fn of(tree: Tree<M, D, FreeImmediately>) -> Ink<M, D> {
        Ink {
            writer: Writer::new(Items::new(tree)),
            compaction: Compaction::above(None),
            counted: Counted::default(),
            sweep: Sweep::default(),
        }
    }
}
