//! Removes everything, as one step for readers and for a crash
//! (`docs/decisions/0004-grow-the-index-by-splitting-small-segments.md`).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 freeze: all partitions, all segments | everything |
//! | 2 an empty segment per partition, of the next generation; ordered | everything, and segments to mark DEAD |
//! | 3 the store's generation, one word; committed | nothing: segments of another generation do not count |
//! | 4 old segments DEAD, a state that readers ignore; ordered | nothing |
//! | 5 the root is replaced, the locks are released | nothing |
//! | 6 when no reader is left, old segments and their items are freed | nothing |
//!
//! Segments of the old generation that a crash between steps 3 and 4 leaves are buried (marked DEAD) at the next
//! open. So no segment of another generation is ever alive, however long readers keep the old ones, and generation
//! numbers may wrap around.

use std::sync::atomic::Ordering;

use heap::{HeapError, Place};
use parking_lot::Mutex;
use pmem::{Dram, Level, Medium, Offset};

use super::directory::{Directory, Retired, Root};
use super::layout::{Geometry, SegmentHeader, State};
use super::open::mark_dead;
use super::{Context, Garbage, Segmented, Table};
use crate::canary;
use crate::shared::Pointer;

/// Creates an empty live segment of the given generation for every partition. `stream` writes each one and returns
/// its table. Not ordered.
pub(crate) fn empty_root<M: Medium, D: Dram, S: Segmented>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    generation: u16,
    stream: impl Fn(Offset, SegmentHeader) -> Box<S>,
) -> Result<Box<Root<S>>, HeapError> {
    let reserved =
        (0..geometry.partition_count()).map(|_| cx.heap.reserve_segment(cx.medium)).collect::<Result<Vec<_>, _>>()?;
    let directories = reserved.into_iter().zip(0..).map(|(reservation, partition)| {
        let header = SegmentHeader { state: State::Live, partition, depth: 0, prefix: 0, generation };
        let segment = stream(reservation.publish().offset, header);
        Directory::build(vec![segment], geometry).expect("one segment of depth 0 is a directory")
    });
    Ok(Root::new(directories))
}

/// Carries out steps 1 to 5, with `empty` for the new segments, and returns the unlinked root.
///
/// # Errors
/// Returns the error of `empty`, after which nothing has changed, or that of the medium.
pub(crate) fn clear<M: Medium, D: Dram, S: Segmented>(
    cx: Context<'_, M, D>,
    partitions: &[Mutex<()>],
    root: &Pointer<Root<S>>,
    empty: impl FnOnce(u16) -> Result<Box<Root<S>>, HeapError>,
) -> Result<Retired<Root<S>>, HeapError> {
    let _pin = epoch::pin();
    let _partitions: Vec<_> = partitions.iter().map(|partition| partition.lock()).collect();
    // SAFETY: the root is never null; only `clear` replaces it, under the locks that are held.
    let old = unsafe { &*root.load(Ordering::Acquire) };
    let frozen: Vec<_> = old.segments().map(Segmented::lock_all).collect();
    let generation = cx.heap.region().generation().wrapping_add(1);
    let new = empty(generation)?;
    cx.medium.order_unless(canary::CLEAR_BEFORE_SEGMENTS);
    cx.heap.region().set_generation(cx.medium, generation);
    cx.medium.wait(cx.medium.commit(Level::Strongest))?;
    if !cx.medium.breaks(canary::CLEARED_UNBURIED) {
        old.segments().flat_map(|segment| segment.chain(cx.medium)).for_each(|offset| mark_dead(cx.medium, offset));
        cx.medium.order();
    }
    old.segments().for_each(Segmented::kill);
    let old = root.swap(Box::into_raw(new), Ordering::AcqRel);
    drop(frozen);
    // SAFETY: it came from a box, and only `clear` replaces the root, under all partition locks.
    Ok(unsafe { Retired::new(old) })
}

/// Carries out step 6: frees the segments of a root that `clear` unlinked, and their items. The caller has waited until
/// no thread that was pinned during `clear` is still pinned.
pub(crate) fn free<M: Medium, D: Dram, S: Segmented, P: IntoIterator<Item = Place>>(
    cx: Context<'_, M, D>,
    root: Retired<Root<S>>,
    items: impl Fn(&S) -> P,
) {
    for segment in root.segments() {
        let all: Vec<_> = items(segment).into_iter().chain(segment.places(cx.medium)).collect();
        all.into_iter().for_each(|place| cx.heap.free(cx.medium, place));
    }
    cx.retire(Garbage::Table(Table::new(root)));
}
