//! The InK engine: a persistent B+tree (`pbtree`), of which nothing is in volatile memory but locks, and what separators begin with as
//! far as searches came by those. Keys are in order at once, and the engine serves as soon as it is open.
//!
//! Everything durable, and the order of its writes, is the tree's: `pbtree` and `undo_log` say what a crash leaves. This crate
//! gives the tree the engines' words.
//!
//! # Values and callbacks
//! Values are copied under the leaf's lock, into memory that the thread keeps, and shown after it: a callback may use the
//! store. So nothing is read that was let go of, and what is let go of is free at once.
//!
//! # Keys that expire
//! A key whose time has come is absent to every caller; its item stays until written over or reaped. The reaper walks the tree,
//! a leaf a step, while a value that expires may be there, and deletes what is due by a write that looks again under the lock.
//! `reaper.rs`, `engine::Reaper`.
//!
//! # Room that deletes leave
//! A deleted key's pair stays in the leaf until that is full, or is merged with a neighbour, as the background does once an eighth of the
//! keys was deleted. `merging.rs`.
//!
//! # Conditional writes
//! A value has a stamp that no other value of the store ever has. A write that depends on what it saw takes place if the stamp is
//! still that one, or the key is still absent, under the leaf's lock.

mod batch;
mod compact;
mod copy;
mod counted;
mod error;
mod merging;
mod open;
mod ops;
mod ordered;
mod pages;
mod reaper;
mod sweep;
mod update;

use std::sync::atomic::AtomicBool;

use engine::{Clock, Compaction, Reaper, Verify};
use pbtree::{FreeImmediately, Tree};
use pmem::{Dram, Medium};

pub use pbtree::Options;
pub use pbtree::layout::ORDERS;

use counted::Counted;
use merging::Merging;

/// The name in stats and options.
pub const NAME: &str = "ink";

/// The InK engine over a medium.
pub struct Ink<M: Medium, D: Dram> {
    tree: Tree<M, D, FreeImmediately>,
    clock: Clock,
    verify: Verify,
    reaper: Reaper,
    compaction: Compaction<Vec<u8>>,
    counted: Counted,
    merging: Merging,
    sweep_met_damage: AtomicBool,
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// The same store, by this clock.
    #[must_use]
    pub fn by_clock(self, clock: Clock) -> Ink<M, D> {
        Ink { clock, ..self }
    }

    /// The same store, whose reads compare this much.
    #[must_use]
    pub fn verifying(self, verify: Verify) -> Ink<M, D> {
        Ink { verify, ..self }
    }

    /// The same store, which gives space back in the background ([`engine::Engine::step`]) while it takes more than `above` times what values, keys
    /// and nodes occupy; never if there is no such limit.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> Ink<M, D> {
        Ink { compaction: Compaction::above(above), ..self }
    }

    /// The tree.
    pub fn tree(&self) -> &Tree<M, D, FreeImmediately> {
        &self.tree
    }
}
