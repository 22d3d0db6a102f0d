//! Verifying the index: every entry where a search finds it, no key twice.

use std::collections::HashMap;
use std::iter;

use pmem::{Medium, Offset};

use super::PartitionedHash;
use super::layout::{Home, OverflowPath};
use super::salvage::chain_from;
use super::segment::{Entry, Segment, chained};
use super::walk::Cursor;
use crate::Position;
use crate::segmented::record::header;

/// Something wrong in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentDamage {
    /// The word that is wrong.
    pub at: Offset,
    /// What is wrong with it.
    pub what: &'static str,
}

/// Is shown a live entry: signature, place, word, and the words of earlier entries of the same signature.
pub type EachEntry<'a> = dyn FnMut(u64, Offset, Position, &[Position]) + 'a;

impl PartitionedHash {
    /// Shows what is wrong with the segment at `cursor`, and every live entry to `each`, together with the others of the
    /// segment that have the same signature and so might be of the same key. `is_place` tells where segments can lie. The
    /// caller is pinned; nobody writes to the segment meanwhile, or damage may be reported that is none.
    pub fn check_segment<M: Medium>(
        &self,
        medium: &M,
        cursor: Cursor,
        is_place: &dyn Fn(Offset) -> bool,
        damaged: &mut dyn FnMut(SegmentDamage),
        each: &mut EachEntry<'_>,
    ) -> Cursor {
        let segment = self.at_cursor(cursor);
        if header(medium, segment.offset()).is_none() {
            damaged(SegmentDamage { at: segment.offset(), what: "a segment's header is damaged" });
        }
        if let (_, Some(at)) = chain_from(medium, segment.offset(), is_place) {
            damaged(SegmentDamage { at, what: "the word that names a chained segment is damaged" });
        }
        let orphan = |entry: &Entry| entry.position.is_in_batch() && !self.batches.has(entry.slot);
        for entry in segment.entries(medium).filter(orphan) {
            damaged(SegmentDamage {
                at: entry.slot.position,
                what: "an entry is marked as one of a batch that is none",
            });
        }
        let decided = segment.entries(medium).map(|entry| entry.decided(medium, &self.batches));
        // An entry that the medium does not make durable is told of when it is read.
        let live: Vec<Entry> = decided.filter_map(Result::ok).filter(|entry| entry.position.is_live()).collect();
        let mut twins: HashMap<u64, Vec<Position>> = HashMap::new();
        for entry in &live {
            let earlier = twins.entry(entry.signature).or_default();
            self.check_entry(medium, segment, entry, damaged);
            each(entry.signature, entry.slot.position, entry.position, earlier);
            earlier.push(entry.position);
        }
        if segment.entry_count() != live.len() as u64 {
            damaged(SegmentDamage {
                at: segment.offset(),
                what: "a segment has another number of entries than was counted",
            });
        }
        self.next_cursor(cursor, segment)
    }

    fn check_entry<M: Medium>(
        &self,
        medium: &M,
        segment: &Segment,
        entry: &Entry,
        damaged: &mut dyn FnMut(SegmentDamage),
    ) {
        let mut wrong = |what| damaged(SegmentDamage { at: entry.slot.signature, what });
        if self.geometry.prefix(entry.signature, segment.depth()) != segment.prefix() {
            wrong("an entry's signature belongs to another segment");
        } else if !is_reachable(medium, segment.offset(), entry) {
            wrong("an entry lies where no search comes");
        }
    }
}

/// True if a search in the segment at `segment` for the entry's signature comes to its line.
pub(super) fn is_reachable<M: Medium>(medium: &M, segment: Offset, entry: &Entry) -> bool {
    let (home, line) = (Home::of(entry.signature), entry.slot.position.line());
    if line == home.offset(segment) {
        return true;
    }
    let marked = |way| super::find::has_way(medium, home, way, segment);
    let in_segment = [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further]
        .into_iter()
        .any(|way| marked(way) && home.lines(way, segment).any(|candidate| candidate == line));
    let base = Offset(line.0 / heap::layout::SEGMENT_BYTES * heap::layout::SEGMENT_BYTES);
    let mut chain = iter::successors(chained(medium, segment), |&segment| chained(medium, segment));
    in_segment || marked(OverflowPath::Further) && chain.any(|chained| chained == base)
}
