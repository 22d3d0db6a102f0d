//! Saves the counters that the sweep computes in the clean image, so that the next open does not have to count.
//!
//! For each segment, in the order of the directories: the offset, then the counters of the pairs, four to a word.

use super::layout::PAIR_COUNT;
use super::segment::Segment;
use crate::segmented::Segmented;

const COUNT_BITS: u32 = 16;
const COUNTS_PER_WORD: usize = (u64::BITS / COUNT_BITS) as usize;
/// The number of words that one segment needs.
pub const SEGMENT_COUNT_WORDS: usize = 1 + (PAIR_COUNT as usize).div_ceil(COUNTS_PER_WORD);

impl Segment {
    /// Returns the words of the segment.
    pub(super) fn count_words(&self) -> impl Iterator<Item = u64> {
        let word = |counts: &[u16]| counts.iter().rev().fold(0, |word, &count| word << COUNT_BITS | u64::from(count));
        let mut words = [self.offset().0; SEGMENT_COUNT_WORDS];
        let counts = self.counts();
        words[1..].iter_mut().zip(counts.chunks(COUNTS_PER_WORD)).for_each(|(to, counts)| *to = word(counts));
        words.into_iter()
    }

    /// Adopts the words, and returns the number of additional entries. The process that saved the words had made
    /// everything durable before.
    pub(super) fn adopt_count_words(&self, words: &[u64; SEGMENT_COUNT_WORDS]) -> i64 {
        let counts = std::array::from_fn(|pair| {
            (words[1 + pair / COUNTS_PER_WORD] >> (pair % COUNTS_PER_WORD * COUNT_BITS as usize)) as u16
        });
        self.trust();
        self.set_counts(&counts)
    }
}
