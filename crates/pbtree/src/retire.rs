//! The handling of places to which nothing refers any more.

use heap::{Heap, Place};
use pmem::{Dram, Medium};

/// Receives the places that a tree releases.
pub trait Retire<M: Medium, D: Dram>: Send + Sync + 'static {
    /// Called when nothing refers to `place` any more, durably. The place may be freed once no reader is left that
    /// got it from a [`Value`](crate::Value). The tree itself does not read it again.
    fn retire(&self, medium: &M, heap: &Heap<D>, place: Place);
}

/// Frees immediately: for hosts that copy values inside the callback.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreeImmediately;

impl<M: Medium, D: Dram> Retire<M, D> for FreeImmediately {
    fn retire(&self, medium: &M, heap: &Heap<D>, place: Place) {
        heap.free(medium, place);
    }
}
