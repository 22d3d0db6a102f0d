//! The header of segments in every hash index, and the path from a signature to its segment.
//!
//! ```text
//! header line                           signature, 64 bits, from the top
//! +0   state word, sealed               partition | directory index (depth bits) | … the index uses the remaining bits
//! +8   prefix, sealed
//! +16  next in the overflow chain, sealed, or 0
//! ```

use pmem::{seal, unseal};

/// The offset of the prefix word in the header line.
pub const PREFIX_BYTES: u64 = 8;
/// The offset of the chain word in the header line.
pub const NEXT_BYTES: u64 = 16;

/// The maximum number of directory bits. 2^26 segments per partition are more than any region holds.
pub const DEPTH_MAX: u32 = 26;

/// The maximum number of partitions.
pub const PARTITION_COUNT_MAX: u32 = 256;

/// The mapping from signatures to partitions and directory entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    partition_bits: u32,
}

impl Geometry {
    /// Returns the geometry of a store with this many partitions, a power of two up to 256, or `None` for any other
    /// number.
    #[must_use]
    pub fn new(partition_count: u32) -> Option<Geometry> {
        let fits = partition_count.is_power_of_two() && partition_count <= PARTITION_COUNT_MAX;
        fits.then(|| Geometry { partition_bits: partition_count.trailing_zeros() })
    }

    /// Returns the number of partitions.
    #[must_use]
    pub fn partition_count(self) -> usize {
        1 << self.partition_bits
    }

    /// Returns the partition of a signature.
    #[inline(always)]
    #[must_use]
    pub fn partition(self, signature: u64) -> usize {
        // Two shifts, because a shift by 64 would overflow if there is only one partition.
        (signature >> 1 >> (63 - self.partition_bits)) as usize
    }

    /// Returns the lowest signature of a partition whose other bits begin with `prefix`, aligned to the left of 64
    /// bits.
    #[must_use]
    pub fn signature(self, partition: u64, prefix: u64) -> u64 {
        (partition << 1 << (63 - self.partition_bits)) | prefix >> self.partition_bits
    }

    /// Returns the highest signature with the same first bits as `signature`: the bits of the partition, and
    /// `depth` bits after these.
    #[inline(always)]
    #[must_use]
    pub fn last_alike(self, signature: u64, depth: u32) -> u64 {
        signature | u64::MAX.checked_shr(self.partition_bits + depth).unwrap_or(0)
    }

    /// Returns a word whose lowest bits are those of the partition; the caller masks the others. It needs fewer
    /// instructions than [`Geometry::partition`], because no shift can be by 64 bits.
    #[inline(always)]
    #[must_use]
    pub fn leading(self, signature: u64) -> u64 {
        signature.rotate_left(self.partition_bits)
    }

    /// Returns the number of bits of a signature that lead to a place in a directory of this depth.
    #[must_use]
    pub fn leading_bits(self, depth: u32) -> u32 {
        self.partition_bits + depth
    }

    /// Returns the first `depth` bits after those of the partition.
    #[inline(always)]
    #[must_use]
    pub fn prefix(self, signature: u64, depth: u32) -> u64 {
        (signature << self.partition_bits) >> 1 >> (63 - depth)
    }
}

/// The state of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Created by a split that is not committed.
    Pending = 1,
    /// In the directory.
    Live = 2,
    /// Chained to another segment, and reached only through it.
    Chained = 3,
    /// Split or cleared: free.
    Dead = 4,
}

/// The first two words of a segment's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// The state of the segment.
    pub state: State,
    /// The partition to which it belongs.
    pub partition: u32,
    /// The number of directory bits that its entries share.
    pub depth: u32,
    /// Those bits.
    pub prefix: u64,
    /// The generation of the store. Segments of another generation were cleared.
    pub generation: u16,
}

impl SegmentHeader {
    /// Returns the state word: `generation:16 | partition:9 | depth:5 | state:3`, sealed.
    #[must_use]
    pub fn state_word(self) -> u64 {
        seal(
            u64::from(self.generation) << 17
                | u64::from(self.partition) << 8
                | u64::from(self.depth) << 3
                | self.state as u64,
        )
    }

    /// Returns state and generation of a state word, or `None` if it is not a state word. In a segment that is not
    /// live, nothing else counts, because a crash may have torn it while it was written.
    #[must_use]
    pub fn state_in(word: u64) -> Option<(State, u16)> {
        let word = unseal(word)?;
        let state = match word & 7 {
            1 => State::Pending,
            2 => State::Live,
            3 => State::Chained,
            4 => State::Dead,
            _ => return None,
        };
        Some((state, (word >> 17) as u16))
    }

    /// Returns the state word changed to DEAD, or `None` if it is not a state word.
    #[must_use]
    pub fn dead(word: u64) -> Option<u64> {
        Some(seal(unseal(word)? & !7 | State::Dead as u64))
    }

    /// Returns the header in these two words, or `None` if they are not a header.
    #[must_use]
    pub fn from_words(state: u64, prefix: u64) -> Option<SegmentHeader> {
        let word = unseal(state)?;
        let (state, generation) = SegmentHeader::state_in(state)?;
        let (depth, partition) = ((word >> 3 & 0x1F) as u32, (word >> 8 & 0x1FF) as u32);
        let prefix = unseal(prefix)?;
        let fits = depth <= DEPTH_MAX && partition < PARTITION_COUNT_MAX && prefix >> depth == 0 && word >> 33 == 0;
        fits.then_some(SegmentHeader { state, partition, depth, prefix, generation })
    }

    /// Returns the header with another state.
    #[must_use]
    pub const fn with(self, state: State) -> SegmentHeader {
        SegmentHeader { state, ..self }
    }
}

/// The words of a partition's split record, in one line. They become durable in this order.
pub mod record {
    /// The offset of the segment that is split.
    pub const OLD_BYTES: u64 = 0;
    /// The offset of the new segment for entries whose next bit is 0.
    pub const ZERO_BYTES: u64 = 8;
    /// The offset of the new segment for entries whose next bit is 1.
    pub const ONE_BYTES: u64 = 16;
    /// The commit word: a sealed 1 makes the new segments live and the old one dead; 0 means that there is no
    /// split.
    pub const COMMIT_BYTES: u64 = 24;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_reject_others() {
        let header = SegmentHeader {
            state: State::Live,
            partition: 255,
            depth: 26,
            prefix: (1 << 26) - 1,
            generation: u16::MAX,
        };
        assert_eq!(SegmentHeader::from_words(header.state_word(), seal(header.prefix)), Some(header));
        assert_eq!(SegmentHeader::dead(header.state_word()), Some(header.with(State::Dead).state_word()));
        assert_eq!(SegmentHeader::from_words(0, 0), None);
        assert_eq!(SegmentHeader::from_words(header.with(State::Dead).state_word() ^ 1, seal(0)), None);
        assert_eq!(SegmentHeader::from_words(SegmentHeader { depth: 3, ..header }.state_word(), seal(8)), None);
    }

    #[test]
    fn geometry_handles_one_partition_and_depth_zero() {
        let one = Geometry::new(1).unwrap();
        assert_eq!((one.partition(u64::MAX), one.prefix(u64::MAX, 0), one.prefix(u64::MAX, 3)), (0, 0, 7));
        let many = Geometry::new(32).unwrap();
        assert_eq!((many.partition(u64::MAX), many.prefix(0x0400_0000_0000_0000, 1)), (31, 1));
        let place = |geometry: Geometry, signature: u64, depth| {
            signature.rotate_left(geometry.leading_bits(depth)) & ((1 << depth) - 1)
        };
        assert_eq!((place(one, 1 << 62, 2), place(one, u64::MAX, 0)), (1, 0));
        assert_eq!((many.leading(17 << 59) & 31, place(many, 0x0400_0000_0000_0000, 1)), (17, 1));
        assert_eq!(Geometry::new(33), None);
        assert_eq!(Geometry::new(512), None);
    }
}
