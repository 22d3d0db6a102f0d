//! What the sweep counts, in words, for the clean image: so that the next opening need not count.
//!
//! Each segment, in the order of the directories: the offset, then the counts of its pairs, four to a word.

use pmem::Offset;

use super::PartitionedHash;
use super::layout::PAIR_COUNT;
use super::segment::Segment;

const COUNT_BITS: u32 = 16;
const COUNTS_PER_WORD: usize = (u64::BITS / COUNT_BITS) as usize;
/// Words of one segment.
pub const SEGMENT_COUNT_WORDS: usize = 1 + (PAIR_COUNT as usize).div_ceil(COUNTS_PER_WORD);

impl PartitionedHash {
    /// Shows all words to `each`. Every segment was counted, and nobody writes meanwhile.
    pub fn count_words(&self, each: &mut dyn FnMut(u64)) {
        let _pin = epoch::pin();
        for segment in self.root().segments() {
            each(segment.offset().0);
            for counts in segment.counts().chunks(COUNTS_PER_WORD) {
                each(counts.iter().rev().fold(0, |word, &count| word << COUNT_BITS | u64::from(count)));
            }
        }
    }

    /// True if the words can be those of this index: segment for segment.
    pub fn fits_count_words(&self, words: &[u64]) -> bool {
        let _pin = epoch::pin();
        let (segments, rest) = words.as_chunks::<SEGMENT_COUNT_WORDS>();
        let offsets = segments.iter().map(|words| Offset(words[0]));
        rest.is_empty() && self.root().segments().map(Segment::offset).eq(offsets)
    }

    /// Takes the words, which fit, for what a sweep would count. They are those of a process that made everything durable
    /// before writing any. Nobody uses the index meanwhile.
    pub fn adopt_count_words(&self, words: &[u64]) {
        let _pin = epoch::pin();
        for (segment, words) in self.root().segments().zip(words.as_chunks::<SEGMENT_COUNT_WORDS>().0) {
            segment.set_counts(&std::array::from_fn(|pair| {
                (words[1 + pair / COUNTS_PER_WORD] >> (pair % COUNTS_PER_WORD * COUNT_BITS as usize)) as u16
            }));
            segment.trust();
        }
    }
}
