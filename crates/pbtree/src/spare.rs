//! The spare node, for merges and for a clear. A merge makes a node before it releases two. Without a spare, in a
//! full region, deletes would leave space in nodes that no merge could collect, and puts of other keys would find
//! none. A clear makes a root before the old tree is released.
//!
//! # Invariants
//! - A split takes a node only while a spare is kept. So the last node is left for a merge, which puts one of its two
//!   back.
//! - The spare exists only in DRAM. Nothing refers to it: after a crash, or at the next opening, it is free.
//! - A thread that exchanges the spare's offset for 0 owns the node.

use core::sync::atomic::Ordering;

use heap::{Place, PlaceKind, Reservation};
use pmem::{Dram, Medium, Offset};

use crate::Error;
use crate::retire::Retire;
use crate::tree::Tree;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Reserves a split's node.
    pub(crate) fn reserve_half(&self, agent: usize) -> Result<Reservation<'_, D>, Error> {
        if self.spare.load(Ordering::Acquire) == 0 {
            self.keep_spare(agent)?;
        }
        self.reserve_node(agent)
    }

    /// Returns a merge's node: the spare, if there is no other.
    pub(crate) fn take_node(&self, agent: usize) -> Result<Place, Error> {
        match self.reserve_node(agent) {
            Ok(reserved) => Ok(reserved.publish()),
            Err(full) => match self.spare.swap(0, Ordering::AcqRel) {
                0 => Err(full),
                kept => Ok(self.kept_place(kept)),
            },
        }
    }

    /// Reserves a clear's root: the space of the spare, if there is no other. No writer runs.
    pub(crate) fn reserve_root(&self, agent: usize) -> Result<Reservation<'_, D>, Error> {
        self.reserve_node(agent).or_else(|full| match self.spare.swap(0, Ordering::AcqRel) {
            0 => Err(full),
            kept => {
                self.heap.cancel(self.kept_place(kept));
                self.reserve_node(agent)
            }
        })
    }

    fn kept_place(&self, kept: u64) -> Place {
        Place { offset: Offset(kept), kind: PlaceKind::Slot(self.class) }
    }

    /// Keeps a spare node, if none is kept by then.
    pub(crate) fn keep_spare(&self, agent: usize) -> Result<(), Error> {
        let reserved = self.reserve_node(agent)?;
        let Offset(kept) = reserved.place().offset;
        if self.spare.compare_exchange(0, kept, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            reserved.publish();
        }
        Ok(())
    }

    /// Returns the bytes of the spare node, if there is one.
    pub(crate) fn spare_bytes(&self) -> u64 {
        if self.spare.load(Ordering::Relaxed) == 0 { 0 } else { self.class.bytes() }
    }
}
