//! The InK engine: a persistent B+tree (`pbtree`). DRAM holds only locks, and the first bytes of separators that
//! searches have passed. Keys are always in order, and the engine serves as soon as it is open.
//!
//! The tree owns all durable data and the order of its writes; `pbtree` and `undo_log` describe the state after a
//! crash. This crate implements the engines' interface.
//!
//! # Values and callbacks
//! Values are copied under the leaf's lock, into memory that the thread reuses, and shown after the lock is released:
//! a callback may use the store. So no released place is read, and released places are free immediately.
//!
//! # Keys that expire
//! An expired key is absent for every caller; the item stays until a write replaces the item or the reaper deletes
//! the key. While there may be values with an expiry, the reaper walks the tree, one leaf a step, and deletes expired
//! keys by a write that checks again under the lock. `reaper.rs`, `engine::Reaper`.
//!
//! # Space of deleted keys
//! A deleted key's pair stays in the leaf until the leaf is full or is merged with a neighbour. The background merges
//! once an eighth of the keys was deleted. `merging.rs`.
//!
//! # Conditional writes
//! A value has a stamp that no other value of the store ever has. A conditional write is made if, under the leaf's
//! lock, the stamp is still the one that was read, or the key is still absent.
//!
//! # Modules
//! A module uses only modules of the lines above its own.
//!
//! | modules | types, and their fields |
//! |---|---|
//! | `error` `copy` `pages` | copies of values and of leaves |
//! | `counted` `sweep` `merging` | the state of one background job each, which gets the tree by reference |
//! | `items` `walk` | `Items`: the tree, the clock, the level of checks; reads |
//! | `writer` `batch` `reaper` | `Writer`: items, reaper, merges; writes |
//! | the crate's root | `Ink`: the writer, the compaction, the sweep, the counts |
//! | `open` `compact` `ops` `ordered` | the engine's interface |

mod batch;
mod compact;
mod copy;
mod counted;
mod error;
mod items;
mod merging;
mod open;
mod ops;
mod ordered;
mod pages;
mod reaper;
mod sweep;
mod walk;
mod writer;

use engine::{Clock, Compaction, Verify};
use pbtree::{FreeImmediately, Tree};
use pmem::{Dram, Medium};

pub use pbtree::Options;
pub use pbtree::layout::ORDERS;

use counted::Counted;
use items::Items;
use sweep::Sweep;
use writer::Writer;

/// The engine's name in statistics and options.
pub const NAME: &str = "ink";

/// The InK engine over a medium.
pub struct Ink<M: Medium, D: Dram> {
    writer: Writer<M, D>,
    compaction: Compaction<Vec<u8>>,
    counted: Counted,
    sweep: Sweep,
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Returns the store with this clock.
    #[must_use]
    pub fn by_clock(mut self, clock: Clock) -> Ink<M, D> {
        self.writer.items_mut().set_clock(clock);
        self
    }

    /// Returns the store with this level of checks by reads.
    #[must_use]
    pub fn verifying(mut self, verify: Verify) -> Ink<M, D> {
        self.writer.items_mut().set_verify(verify);
        self
    }

    /// Returns the store with a limit above which the background ([`engine::Maintenance::step`]) compacts it: while it
    /// occupies more than `above` times the bytes of its values, keys and nodes. `None` disables background
    /// compaction.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> Ink<M, D> {
        Ink { compaction: Compaction::above(above), ..self }
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Tree<M, D, FreeImmediately> {
        self.items().tree()
    }

    #[inline(always)]
    fn items(&self) -> &Items<M, D> {
        self.writer.items()
    }
}
