//! Verifies the index: a search reaches every entry, and no key has two.

use std::collections::HashMap;
use std::iter;

use pmem::{Medium, Offset};

use super::batch::Batches;
use super::layout::{Geometry, Home, OverflowPath};
use super::salvage::chain_from;
use super::segment::{Entry, Segment, chained};
use crate::Position;
use crate::segmented::Segmented;
use crate::segmented::record::header;

/// Damage found in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentDamage {
    /// The place of the damaged word.
    pub at: Offset,
    /// A description of the damage.
    pub what: &'static str,
}

/// Called with a live entry: its signature, place and word, and the words of earlier entries of the same signature.
pub type EachEntry<'a> = dyn FnMut(u64, Offset, Position, &[Position]) + 'a;

/// Reports the damage in a segment to `damaged`, and passes every live entry to `each`.
pub(super) fn check<M: Medium>(
    medium: &M,
    segment: &Segment,
    (geometry, batches): (Geometry, &Batches),
    is_place: &dyn Fn(Offset) -> bool,
    damaged: &mut dyn FnMut(SegmentDamage),
    each: &mut EachEntry<'_>,
) {
    if header(medium, segment.offset()).is_none() {
        damaged(SegmentDamage { at: segment.offset(), what: "a segment's header is damaged" });
    }
    if let (_, Some(at)) = chain_from(medium, segment.offset(), is_place) {
        damaged(SegmentDamage { at, what: "the word that names a chained segment is damaged" });
    }
    let orphan = |entry: &Entry| entry.position.is_in_batch() && !batches.has(entry.slot);
    for entry in segment.entries(medium).filter(orphan) {
        damaged(SegmentDamage {
            at: entry.slot.position,
            what: "an entry is marked as part of a batch that does not exist",
        });
    }
    let decided = segment.entries(medium).map(|entry| entry.decided(medium, batches));
    // If the medium cannot make an entry durable, a read of the entry reports that.
    let live: Vec<Entry> = decided.filter_map(Result::ok).filter(|entry| entry.position.is_live()).collect();
    let mut positions: HashMap<u64, Vec<Position>> = HashMap::new();
    for entry in &live {
        let earlier = positions.entry(entry.signature).or_default();
        check_entry(medium, geometry, segment, entry, damaged);
        each(entry.signature, entry.slot.position, entry.position, earlier);
        earlier.push(entry.position);
    }
    if segment.entry_count() != live.len() as u64 {
        damaged(SegmentDamage { at: segment.offset(), what: "a segment's number of entries differs from its counter" });
    }
}

fn check_entry<M: Medium>(
    medium: &M,
    geometry: Geometry,
    segment: &Segment,
    entry: &Entry,
    damaged: &mut dyn FnMut(SegmentDamage),
) {
    let mut wrong = |what| damaged(SegmentDamage { at: entry.slot.signature, what });
    if geometry.prefix(entry.signature, segment.depth()) != segment.prefix() {
        wrong("an entry's signature belongs to another segment");
    } else if !is_reachable(medium, segment.offset(), entry) {
        wrong("an entry is at a place that no search reaches");
    }
}

/// Returns true if a search for the entry's signature in the segment at `segment` reaches the entry's line.
pub(super) fn is_reachable<M: Medium>(medium: &M, segment: Offset, entry: &Entry) -> bool {
    let (home, line) = (Home::of(entry.signature), entry.slot.position.line());
    if line == home.offset(segment) {
        return true;
    }
    let marked = |way| super::search::has_way(medium, home, way, segment);
    let in_segment = [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further]
        .into_iter()
        .any(|way| marked(way) && home.lines(way, segment).any(|candidate| candidate == line));
    let base = Offset(line.0 / heap::layout::SEGMENT_BYTES * heap::layout::SEGMENT_BYTES);
    let mut chain = iter::successors(chained(medium, segment), |&segment| chained(medium, segment));
    in_segment || marked(OverflowPath::Further) && chain.any(|chained| chained == base)
}
