//! The allocation of nodes and separators, and the limbo for unlinked ones.

use std::mem;
use std::ptr::NonNull;

use epoch::Limbo;
use pmem::Dram;

use super::NoDram;
use super::arena::{Arena, Piece};
use super::layout::{Inner, Leaf};
use super::separator::Separator;

/// A leaf or an inner node: any bytes are a valid node.
pub(super) trait Node {}

impl Node for Leaf {}
impl Node for Inner {}

/// A node that no other thread can see yet. Dropping it frees its memory.
pub(super) struct Unlinked<'a, N: Node, D: Dram> {
    node: NonNull<N>,
    arena: &'a Arena<D>,
}

impl<N: Node, D: Dram> Unlinked<'_, N, D> {
    pub(super) fn node(&self) -> &N {
        // SAFETY: the piece is as long as a node and aligned to its length; nodes are atomics, so any bytes are a
        // valid node.
        unsafe { self.node.as_ref() }
    }

    /// Returns the address for linking the node, which belongs to the tree from now on.
    pub(super) fn link(self) -> *mut N {
        let node = self.node.as_ptr();
        mem::forget(self);
        node
    }
}

impl<N: Node, D: Dram> Drop for Unlinked<'_, N, D> {
    fn drop(&mut self) {
        self.arena.take_back(Piece::at(self.node.cast(), size_of::<N>()));
    }
}

/// The arena, and its pieces that pinned readers may still read.
#[derive(Debug)]
pub(super) struct Memory<D: Dram> {
    pub(super) arena: Arena<D>,
    limbo: Limbo<Piece>,
}

impl<D: Dram> Memory<D> {
    pub(super) fn new(dram: D) -> Memory<D> {
        Memory { arena: Arena::new(dram), limbo: Limbo::default() }
    }

    /// Creates an empty leaf that no other thread can see yet.
    pub(super) fn new_leaf(&self) -> Result<Unlinked<'_, Leaf, D>, NoDram> {
        let leaf = self.unlinked::<Leaf>()?;
        leaf.node().reset();
        Ok(leaf)
    }

    /// Creates an inner node that no other thread can see yet; the caller fills it.
    pub(super) fn new_inner(&self) -> Result<Unlinked<'_, Inner, D>, NoDram> {
        let inner = self.unlinked::<Inner>()?;
        inner.node().version.reset();
        Ok(inner)
    }

    fn unlinked<N: Node>(&self) -> Result<Unlinked<'_, N, D>, NoDram> {
        Ok(Unlinked { node: self.arena.allocate(size_of::<N>())?.start().cast(), arena: &self.arena })
    }

    /// Retires a node that was unlinked and is obsolete.
    pub(super) fn retire<N>(&self, node: &N) {
        self.retire_piece(Piece::at(NonNull::from(node).cast(), size_of::<N>()));
    }

    /// Retires a separator that was unlinked.
    pub(super) fn retire_separator(&self, separator: Separator) {
        if let Some(piece) = separator.piece() {
            self.retire_piece(piece);
        }
    }

    /// Frees everything that no reader can reach any more, and returns true if there was anything.
    pub(super) fn collect(&self) -> bool {
        self.limbo.collect(|piece| self.arena.take_back(piece))
    }

    /// Returns the number of pieces that are not free yet.
    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> u64 {
        self.limbo.len()
    }

    fn retire_piece(&self, piece: Piece) {
        self.limbo.retire(piece, 0, |free| self.arena.take_back(free));
    }
}
