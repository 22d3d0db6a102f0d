//! Creates an empty index, and frees the structures that a `clear` removed (`segmented::clear`).

use heap::HeapError;
use pmem::{Dram, Medium};

use super::draft::empty;
use super::due::NEVER;
use super::layout::Geometry;
use super::segment::Segment;
use super::{Context, Root};
use crate::segmented::clear;
use crate::segmented::directory::Retired;

/// The structures that `clear` unlinked, to be freed with [`Cleared::free`] when no reader uses them any more.
#[derive(Debug)]
#[must_use]
pub struct Cleared(pub(super) Retired<Root>);

impl Cleared {
    /// Carries out step 6. The caller has waited until no thread that was pinned during `clear` is still pinned.
    pub fn free<M: Medium, D: Dram>(self, cx: Context<'_, M, D>) {
        clear::free(cx, self.0, |segment| {
            let live = segment.entries(cx.medium).filter(|entry| entry.position.is_live());
            live.filter_map(|entry| entry.position.place()).collect::<Vec<_>>()
        });
    }
}

/// Creates a root of empty segments; see [`segmented::clear::empty_root`](crate::segmented::clear::empty_root).
pub(super) fn empty_root<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    generation: u16,
) -> Result<Box<Root>, HeapError> {
    clear::empty_root(cx, geometry, generation, |at, header| {
        empty(header).stream(cx.medium, at);
        Box::new(Segment::new(at, header, true, NEVER))
    })
}
