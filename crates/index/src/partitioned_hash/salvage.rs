//! Reads the segments and entries of a damaged index, without a directory and without storing anything.
//!
//! An open rejects an index whose live segments do not cover every prefix exactly once. Salvage considers each
//! segment separately. The state word decides whether the segment is in use. If that word is damaged, the prefixes
//! that no other segment covers show whether the segment can have been in use.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use heap::BatchWord;
use heap::layout::{BATCH_WORD_COUNT, SEGMENT_BYTES};
use heap::salvage::OnDamage;
use pmem::{Medium, Offset, unseal};

use super::batch::{Change, record};
use super::layout::{Geometry, Home, NEXT_BYTES, OverflowPath, PREFIX_BYTES, SegmentHeader, State, entry_lines, slot};
use super::search::has_way;
use super::segment::Entry;
use crate::Position;
use crate::segmented::open::states_of;
use crate::segmented::record::{committed, header};
use heap::HeapError;

/// The contents of a place for a segment, according to its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// No segment: the header is zero.
    Unused,
    /// A segment that is not in use, or is used only through another segment's chain.
    Void,
    /// A segment in use.
    Live(SegmentHeader),
    /// A segment with a damaged header.
    Unreadable {
        /// True if the state word is intact and records that the segment is live.
        is_live: bool,
    },
}

/// The states that committed splits assign to segments, whatever the segments' own headers record.
#[derive(Clone, Debug, Default)]
pub struct SplitStates(HashMap<Offset, State>);

impl SplitStates {
    /// Reads every split record. A damaged record is reported and ignored: until a split has ended, the old segment
    /// has all entries of the new ones.
    pub fn read<M: Medium>(medium: &M, geometry: Geometry, on_damage: &mut OnDamage<'_>) -> SplitStates {
        let mut states = HashMap::new();
        for partition in 0..geometry.partition_count() as u32 {
            match committed(medium, partition) {
                Ok(split) => states.extend(split.iter().flat_map(states_of)),
                Err(HeapError::Damaged { offset, what }) => on_damage(Offset(offset), what),
                Err(_) => {}
            }
        }
        SplitStates(states)
    }

    /// Returns the contents of `segment`, a place in the medium. Here segments of any generation are live.
    pub fn standing<M: Medium>(&self, medium: &M, segment: Offset) -> Standing {
        let (word, prefix) = [0, PREFIX_BYTES].map(|at| medium.load(segment.plus(at), Ordering::Acquire)).into();
        if word == 0 && prefix == 0 {
            return Standing::Unused;
        }
        let Some((stored, _)) = SegmentHeader::state_in(word) else { return Standing::Unreadable { is_live: false } };
        if self.0.get(&segment).copied().unwrap_or(stored) != State::Live {
            return Standing::Void;
        }
        header(medium, segment).map_or(Standing::Unreadable { is_live: true }, Standing::Live)
    }
}

/// The decisions of interrupted batches about their entries, as far as their records are intact.
#[derive(Clone, Debug, Default)]
pub struct Interrupted(HashMap<Offset, Position>);

impl Interrupted {
    /// Reads every batch word and its record. Damaged ones are ignored.
    pub fn read<M: Medium>(medium: &M) -> Interrupted {
        let words = (0..BATCH_WORD_COUNT).filter_map(|number| BatchWord::load(medium, number).ok()?);
        let changes = words.filter_map(|word| Some((word.state, record::read(medium, word.record).ok()?)));
        let decided = |state| move |change: Change| (change.at, change.outcome(state));
        Interrupted(changes.flat_map(|(state, changes)| changes.into_iter().map(decided(state))).collect())
    }

    /// Returns the word that the batch of a marked entry decides, or `None` if no record has the entry.
    #[must_use]
    pub fn decided(&self, entry: &Entry) -> Option<Position> {
        self.0.get(&entry.slot.position).copied()
    }
}

/// Returns the segments of the chain that begins with `segment`, including `segment`, and the place of the damaged
/// chain word, if there is one. `is_place` returns whether a segment can be at an offset.
pub fn chain_from<M: Medium>(
    medium: &M,
    segment: Offset,
    is_place: &dyn Fn(Offset) -> bool,
) -> (Vec<Offset>, Option<Offset>) {
    let mut chain = vec![segment];
    loop {
        let at = chain[chain.len() - 1].plus(NEXT_BYTES);
        let next = match medium.load(at, Ordering::Acquire) {
            0 => return (chain, None),
            word => unseal(word).map(Offset),
        };
        match next {
            Some(Offset(0)) => return (chain, None),
            Some(next) if is_place(next) && !chain.contains(&next) => chain.push(next),
            _ => return (chain, Some(at)),
        }
    }
}

/// Returns every entry of the segment at `segment`, a place in the medium, including empty ones.
pub fn entries<M: Medium>(medium: &M, segment: Offset) -> impl Iterator<Item = Entry> + '_ {
    let slots = entry_lines(segment).flat_map(|line| (0..4).map(move |i| slot(line, i)));
    slots.map(|slot| Entry::read(medium, slot))
}

/// Returns whether the home line of `signature`, in the segment at `segment`, records that an entry of this home
/// may be in the stash.
pub fn leads_to_stash<M: Medium>(medium: &M, signature: u64, segment: Offset) -> bool {
    has_way(medium, Home::of(signature), OverflowPath::Further, segment)
}

/// The signatures that live segments cover: a map from the first signature of a range to the last.
#[derive(Clone, Debug, Default)]
pub struct Cover(BTreeMap<u64, u64>);

impl Cover {
    /// Adds the signatures of a live segment. Returns `None` if the geometry has no such segment.
    pub fn add(&mut self, geometry: Geometry, header: SegmentHeader) -> Option<()> {
        let (first, last) = geometry.signatures(header)?.into_inner();
        let known = self.0.entry(first).or_insert(last);
        *known = last.max(*known);
        Some(())
    }

    /// Returns the ranges of signatures that no live segment covers.
    #[must_use]
    pub fn gaps(&self) -> Vec<RangeInclusive<u64>> {
        let (mut gaps, mut next) = (Vec::new(), Some(0));
        for (&first, &last) in &self.0 {
            let Some(from) = next else { break };
            if first > from {
                gaps.push(from..=first - 1);
            }
            next = last.checked_add(1).map(|past| past.max(from));
        }
        gaps.extend(next.map(|from| from..=u64::MAX));
        gaps
    }
}

impl Geometry {
    /// Returns the signatures that belong to a segment, or `None` if its partition does not exist.
    #[must_use]
    pub fn signatures(self, header: SegmentHeader) -> Option<RangeInclusive<u64>> {
        let bits = self.partition_count().trailing_zeros() + header.depth;
        let prefix = u64::from(header.partition) << header.depth | header.prefix;
        let first = (prefix << 1).checked_shl(63 - bits).unwrap_or(0);
        let exists = (header.partition as usize) < self.partition_count();
        exists.then_some(first..=first | u64::MAX.checked_shr(bits).unwrap_or(0))
    }
}

/// Returns true if a segment is entirely inside a medium of this length, at an aligned offset.
#[must_use]
pub fn is_in(len_bytes: u64, segment: Offset) -> bool {
    segment.0.is_multiple_of(SEGMENT_BYTES) && segment.span(SEGMENT_BYTES).end().is_some_and(|end| end <= len_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(partition: u32, depth: u32, prefix: u64) -> SegmentHeader {
        SegmentHeader { state: State::Live, partition, depth, prefix, generation: 0 }
    }

    #[test]
    fn segment_holds_only_its_signatures() {
        for partition_count in [1, 4, 256] {
            let geometry = Geometry::new(partition_count).unwrap();
            for signature in [0, 1, 0x8000_0000_0000_0000, 0x0123_4567_89AB_CDEF, u64::MAX] {
                for depth in [0, 1, 5, 26] {
                    let partition = geometry.partition(signature) as u32;
                    let header = live(partition, depth, geometry.prefix(signature, depth));
                    let range = geometry.signatures(header).unwrap();
                    assert!(range.contains(&signature), "{signature:#x} in {range:x?} of depth {depth}");
                    assert_eq!(
                        (geometry.prefix(*range.start(), depth), geometry.prefix(*range.end(), depth)).0,
                        header.prefix
                    );
                    let total = u128::from(range.end() - range.start()) + 1;
                    assert_eq!((total * u128::from(partition_count)) << depth, 1 << 64);
                }
            }
        }
        assert_eq!(Geometry::new(4).unwrap().signatures(live(4, 0, 0)), None);
    }

    #[test]
    fn gaps_are_what_no_segment_covers() {
        let geometry = Geometry::new(2).unwrap();
        let mut cover = Cover::default();
        assert_eq!(cover.gaps(), [0..=u64::MAX]);
        cover.add(geometry, live(1, 1, 1)).unwrap();
        cover.add(geometry, live(0, 1, 0)).unwrap();
        assert_eq!(cover.gaps(), [1 << 62..=(3 << 62) - 1]);
        cover.add(geometry, live(0, 0, 0)).unwrap();
        assert_eq!(cover.gaps(), [1 << 63..=(3 << 62) - 1]);
        cover.add(geometry, live(1, 1, 0)).unwrap();
        assert_eq!(cover.gaps(), []);
    }
}
