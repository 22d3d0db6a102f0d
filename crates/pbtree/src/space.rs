//! The space of a tree: reserved nodes, released places, and the spare node for merges and for a clear. A merge makes
//! a node before it releases two. Without a spare, in a full region, deletes would leave space in nodes that no merge
//! could collect, and puts of other keys would find none. A clear makes a root before the old tree is released.
//!
//! # Invariants
//! - A split takes a node only while a spare is kept. So the last node is left for a merge, which puts one of its two
//!   back.
//! - The spare exists only in DRAM. Nothing refers to it: after a crash, or at the next opening, it is free.
//! - A thread that exchanges the spare's offset for 0 owns the node.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::{Class, Heap, Place, PlaceKind, Reservation};
use pmem::{Dram, Medium, Offset};

use crate::Error;
use crate::retire::Retire;

/// The region's allocator, as a tree uses it.
pub(crate) struct Space<D: Dram, R> {
    heap: Heap<D>,
    retire: R,
    /// The class of nodes.
    class: Class,
    /// The offset of the spare node, or 0.
    spare: AtomicU64,
}

impl<D: Dram, R> Space<D, R> {
    pub(crate) fn new(heap: Heap<D>, class: Class, retire: R) -> Space<D, R> {
        Space { heap, retire, class, spare: AtomicU64::new(0) }
    }

    #[inline(always)]
    pub(crate) fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    /// Releases a place to which nothing refers any more, durably. The caller holds the lock of the node that
    /// referred to it.
    pub(crate) fn let_go<M: Medium>(&self, medium: &M, place: Place)
    where
        R: Retire<M, D>,
    {
        self.heap.sweep().mark_unlinked(place);
        self.retire.retire(medium, &self.heap, place);
    }

    /// Reserves a new node.
    pub(crate) fn reserve_node<M: Medium>(&self, medium: &M, agent: usize) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(medium, self.class.bytes(), agent)?)
    }

    /// Reserves a split's node.
    pub(crate) fn reserve_half<M: Medium>(&self, medium: &M, agent: usize) -> Result<Reservation<'_, D>, Error> {
        self.keep_spare(medium, agent)?;
        self.reserve_node(medium, agent)
    }

    /// Returns a merge's node: the spare, if there is no other.
    pub(crate) fn take_node<M: Medium>(&self, medium: &M, agent: usize) -> Result<Place, Error> {
        match self.reserve_node(medium, agent) {
            Ok(reserved) => Ok(reserved.publish()),
            Err(full) => self.take_spare().ok_or(full),
        }
    }

    /// Reserves a clear's root: the space of the spare, if there is no other. No writer runs.
    pub(crate) fn reserve_root<M: Medium>(&self, medium: &M, agent: usize) -> Result<Reservation<'_, D>, Error> {
        self.reserve_node(medium, agent).or_else(|full| {
            self.heap.cancel(self.take_spare().ok_or(full)?);
            self.reserve_node(medium, agent)
        })
    }

    fn take_spare(&self) -> Option<Place> {
        let kept = self.spare.swap(0, Ordering::AcqRel);
        (kept != 0).then_some(Place { offset: Offset(kept), kind: PlaceKind::Slot(self.class) })
    }

    /// Keeps a spare node, unless one is kept.
    pub(crate) fn keep_spare<M: Medium>(&self, medium: &M, agent: usize) -> Result<(), Error> {
        if self.spare.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        let reserved = self.reserve_node(medium, agent)?;
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
