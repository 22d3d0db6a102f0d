//! What becomes of places that nothing names any more.

use heap::{Heap, Place};
use pmem::{Dram, Medium};

/// Takes what a tree lets go of.
pub trait Retire<M: Medium, D: Dram>: Send + Sync + 'static {
    /// Nothing names `place` any more, durably. The place may be freed once no reader is left that got it from a
    /// [`Value`](crate::Value): the tree itself does not read it again.
    fn retire(&self, medium: &M, heap: &Heap<D>, place: Place);
}

/// Frees at once: for hosts that copy values while they are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreeImmediately;

impl<M: Medium, D: Dram> Retire<M, D> for FreeImmediately {
    fn retire(&self, medium: &M, heap: &Heap<D>, place: Place) {
        heap.free(medium, place);
    }
}
