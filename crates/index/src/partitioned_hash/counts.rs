//! Saves the counters that the sweep computes in the clean image, so that the next open does not have to count.
//!
//! For each segment, in the order of the directories: the offset, then the counters of the pairs, four to a word.

use pmem::Offset;

use super::PartitionedHash;
use super::layout::PAIR_COUNT;
use super::segment::Segment;

const COUNT_BITS: u32 = 16;
const COUNTS_PER_WORD: usize = (u64::BITS / COUNT_BITS) as usize;
/// The number of words that one segment needs.
pub const SEGMENT_COUNT_WORDS: usize = 1 + (PAIR_COUNT as usize).div_ceil(COUNTS_PER_WORD);

impl PartitionedHash {
    /// Passes all words to `each`. Every segment must have been counted, and no thread may write during the call.
    pub fn count_words(&self, each: &mut dyn FnMut(u64)) {
        let _pin = epoch::pin();
        for segment in self.root().segments() {
            each(segment.offset().0);
            for counts in segment.counts().chunks(COUNTS_PER_WORD) {
                each(counts.iter().rev().fold(0, |word, &count| word << COUNT_BITS | u64::from(count)));
            }
        }
    }

    /// Returns true if the words can belong to this index: they name the same segments in the same order.
    pub fn fits_count_words(&self, words: &[u64]) -> bool {
        let _pin = epoch::pin();
        let (segments, rest) = words.as_chunks::<SEGMENT_COUNT_WORDS>();
        let offsets = segments.iter().map(|words| Offset(words[0]));
        rest.is_empty() && self.root().segments().map(Segment::offset).eq(offsets)
    }

    /// Adopts the words, which must fit, instead of the counters that a sweep would compute. The process that saved
    /// the words had made everything durable before. No other thread may use the index during the call.
    pub fn adopt_count_words(&self, words: &[u64]) {
        let _pin = epoch::pin();
        for (segment, words) in self.root().segments().zip(words.as_chunks::<SEGMENT_COUNT_WORDS>().0) {
            let counts = std::array::from_fn(|pair| {
                (words[1 + pair / COUNTS_PER_WORD] >> (pair % COUNTS_PER_WORD * COUNT_BITS as usize)) as u16
            });
            self.root().tally.add(segment.set_counts(&counts));
            segment.trust();
        }
    }
}
