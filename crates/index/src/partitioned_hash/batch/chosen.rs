//! Free entries that a batch has chosen but not filled yet.

use std::collections::BTreeSet;

use heap::layout::SEGMENT_BYTES;
use pmem::{LINE_BYTES, Offset};

use crate::partitioned_hash::Slot;
use crate::partitioned_hash::layout::{LINE_ENTRY_COUNT, SEGMENT_LINE_COUNT};

const WORD_COUNT: usize = (SEGMENT_LINE_COUNT * LINE_ENTRY_COUNT) as usize / u64::BITS as usize;

/// One bit per entry of the segment in which the batch works. A batch works in one segment after another, and never
/// returns to an earlier one.
#[derive(Default)]
pub(super) struct Chosen {
    segment: Offset,
    bits: [u64; WORD_COUNT],
    /// Entries of chained segments, which are few.
    chained: BTreeSet<Offset>,
}

impl Chosen {
    /// Returns whether `slot`, of `segment` or its chain, was chosen.
    pub(super) fn has(&self, segment: Offset, slot: Slot) -> bool {
        match place(segment, slot) {
            Some((word, bit)) => segment == self.segment && self.bits[word] & bit != 0,
            None => self.chained.contains(&slot.position),
        }
    }

    /// Chooses `slot`, of `segment` or its chain.
    pub(super) fn insert(&mut self, segment: Offset, slot: Slot) {
        let Some((word, bit)) = place(segment, slot) else {
            self.chained.insert(slot.position);
            return;
        };
        if segment != self.segment {
            (self.segment, self.bits) = (segment, [0; WORD_COUNT]);
        }
        self.bits[word] |= bit;
    }
}

/// Returns the word and the bit of a segment's own entry, or `None` for an entry of its chain.
fn place(segment: Offset, slot: Slot) -> Option<(usize, u64)> {
    let bytes = slot.position.0.wrapping_sub(segment.0);
    let entry = bytes / LINE_BYTES * LINE_ENTRY_COUNT + bytes / 8 % LINE_ENTRY_COUNT;
    (bytes < SEGMENT_BYTES).then(|| (entry as usize / u64::BITS as usize, 1 << (entry % u64::from(u64::BITS))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioned_hash::layout::{entry_lines, slot};

    #[test]
    fn entries_and_segments_are_chosen_independently() {
        let [one, two, chained] = [1, 2, 9].map(|number| Offset(number * SEGMENT_BYTES));
        let slots = |segment| entry_lines(segment).flat_map(|line| (0..LINE_ENTRY_COUNT).map(move |i| slot(line, i)));
        let mut chosen = Chosen::default();
        for slot in slots(one).chain(slots(chained).step_by(97)) {
            assert!(!chosen.has(one, slot));
            chosen.insert(one, slot);
            assert!(chosen.has(one, slot));
        }
        assert!(slots(one).all(|slot| chosen.has(one, slot)));
        assert!(slots(two).all(|slot| !chosen.has(two, slot)));
        chosen.insert(two, slots(two).next().expect("a segment has entries"));
        assert_eq!(slots(two).filter(|&slot| chosen.has(two, slot)).count(), 1);
        assert_eq!(slots(chained).filter(|&slot| chosen.has(one, slot)).count(), slots(chained).step_by(97).count());
    }
}
