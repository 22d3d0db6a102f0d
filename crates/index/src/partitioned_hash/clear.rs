//! Removes every entry (`segmented::clear`), and frees the removed structures.

use heap::HeapError;
use pmem::{Dram, Medium};

use super::format::empty_root;
use super::split::segment_place;
use super::{Context, Garbage, PartitionedHash, Root, Table};
use crate::segmented::Segmented;
use crate::segmented::clear::clear;
use crate::segmented::directory::Retired;

impl PartitionedHash {
    /// Removes every entry, as one step for readers and for a crash.
    ///
    /// # Errors
    /// Returns an error if there is no space for the empty segments; then nothing has changed.
    pub fn clear<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<Cleared, HeapError> {
        clear(cx, &self.partitions, &self.root, |generation| empty_root(cx, self.geometry, generation)).map(Cleared)
    }
}

/// The structures that `clear` unlinked, to be freed with [`Cleared::free`] when no reader uses them any more.
#[derive(Debug)]
#[must_use]
pub struct Cleared(Retired<Root>);

impl Cleared {
    /// Carries out step 6. The caller has waited until no thread that was pinned during `clear` is still pinned.
    pub fn free<M: Medium, D: Dram>(self, cx: Context<'_, M, D>) {
        for segment in self.0.segments() {
            let places: Vec<_> = segment
                .entries(cx.medium)
                .filter(|entry| entry.position.is_live())
                .filter_map(|entry| entry.position.place())
                .collect();
            let chain: Vec<_> = segment.chain(cx.medium).collect();
            for place in places.into_iter().chain(chain.into_iter().map(segment_place)) {
                cx.heap.free(cx.medium, place);
            }
        }
        cx.retire(Garbage::Table(Table::new(self.0)));
    }
}
