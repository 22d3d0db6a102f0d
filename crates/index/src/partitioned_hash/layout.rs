//! The bytes of a segment, and the path from a signature to its entry.
//!
//! ```text
//! segment, 16 KiB                       line, 64 bytes: four entries
//! +0      header line                   +0  signature 0     +32 position 0 (overflow: same bucket)
//! +64     7 stash lines                 +8  signature 1     +40 position 1 (overflow: partner bucket)
//! +512    pair 0: 8 lines               +16 signature 2     +48 position 2 (overflow: stash or chain)
//! +1024   pair 1                        +24 signature 3     +56 position 3
//! ...     pair 30
//!
//! header line                           signature, 64 bits, from the top
//! +0   state word, sealed               partition | directory index (depth bits) | … | pair (32 bits), home line (3)
//! +8   prefix, sealed
//! +16  next in the overflow chain, sealed, or 0
//! ```
//!
//! A pair is two buckets of four lines. A bucket is 256 bytes, the unit in which persistent memory is written.
//!
//! Each signature has one *home* line. If that line is full, a new entry overflows to the first free place of: the
//! rest of the bucket, the partner bucket, the stash, a chained segment. The home line keeps a sticky bit for each
//! of these overflow paths, so a search reads only the home line unless a bit is set
//! (`docs/decisions/0004-grow-the-index-by-splitting-small-segments.md`).

use super::slot::Slot;
use heap::layout::SEGMENT_BYTES;
use pmem::{LINE_BYTES, Offset};

pub use crate::segmented::layout::{
    DEPTH_MAX, Geometry, NEXT_BYTES, PARTITION_COUNT_MAX, PREFIX_BYTES, SegmentHeader, State, record,
};

/// The number of entries in a line.
pub const LINE_ENTRY_COUNT: u64 = 4;
/// The number of lines in a bucket: 256 bytes.
pub const BUCKET_LINE_COUNT: u64 = 4;
/// The number of lines in a pair of buckets. One lock guards a pair.
pub const PAIR_LINE_COUNT: u64 = 2 * BUCKET_LINE_COUNT;
/// The number of lines in a segment.
pub const SEGMENT_LINE_COUNT: u64 = SEGMENT_BYTES / LINE_BYTES;
/// The number of pairs in a segment. The header and the stash occupy the lines of one more pair, the first.
pub const PAIR_COUNT: u64 = SEGMENT_LINE_COUNT / PAIR_LINE_COUNT - 1;
/// The number of lines in the stash.
pub const STASH_LINE_COUNT: u64 = PAIR_LINE_COUNT - 1;
/// The number of entries in a segment, including the stash.
pub const SEGMENT_ENTRY_COUNT: u64 = (SEGMENT_LINE_COUNT - 1) * LINE_ENTRY_COUNT;

const _: () =
    assert!(SEGMENT_BYTES == 16_384 && PAIR_COUNT == 31 && STASH_LINE_COUNT == 7 && SEGMENT_ENTRY_COUNT == 1020);
const _: () = assert!(LINE_ENTRY_COUNT * 16 == LINE_BYTES);

/// The overflow paths out of a full home line. The number is that of the position word whose overflow bit stands
/// for the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverflowPath {
    /// The other lines of the bucket.
    Bucket = 0,
    /// The lines of the partner bucket.
    Partner = 1,
    /// The stash, and the segments chained to this one.
    Further = 2,
}

/// The place where a signature's entry belongs, in any segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// The pair, below [`PAIR_COUNT`].
    pub pair: u64,
    /// The line in the pair, below [`PAIR_LINE_COUNT`].
    pub line: u64,
}

impl Home {
    /// Returns the home of `signature`.
    #[inline(always)]
    #[must_use]
    pub const fn of(signature: u64) -> Home {
        Home { pair: (signature as u32 as u64 * PAIR_COUNT) >> 32, line: signature & (PAIR_LINE_COUNT - 1) }
    }

    /// Returns the offset of the home line in the segment at `segment`.
    #[inline(always)]
    #[must_use]
    pub const fn offset(self, segment: Offset) -> Offset {
        segment.plus((self.pair + 1) * (PAIR_LINE_COUNT * LINE_BYTES) + self.line * LINE_BYTES)
    }

    /// Returns the lines of an overflow path, in the order in which they are filled and searched.
    #[inline]
    pub fn lines(self, way: OverflowPath, segment: Offset) -> impl Iterator<Item = Offset> {
        let pair = segment.plus((self.pair + 1) * (PAIR_LINE_COUNT * LINE_BYTES));
        let (first, count, rotate) = match way {
            OverflowPath::Bucket => {
                (self.line / BUCKET_LINE_COUNT * BUCKET_LINE_COUNT, BUCKET_LINE_COUNT - 1, self.line + 1)
            }
            OverflowPath::Partner => {
                (((self.line / BUCKET_LINE_COUNT) ^ 1) * BUCKET_LINE_COUNT, BUCKET_LINE_COUNT, self.line)
            }
            OverflowPath::Further => (0, STASH_LINE_COUNT, 0),
        };
        (0..count).map(move |i| match way {
            OverflowPath::Further => stash_line(segment, i),
            _ => pair.plus((first + (rotate + i) % BUCKET_LINE_COUNT) * LINE_BYTES),
        })
    }
}

/// Returns line `i` of the stash.
#[must_use]
pub const fn stash_line(segment: Offset, i: u64) -> Offset {
    segment.plus((1 + i) * LINE_BYTES)
}

/// Returns all lines that hold entries.
pub fn entry_lines(segment: Offset) -> impl Iterator<Item = Offset> {
    (1..SEGMENT_LINE_COUNT).map(move |i| segment.plus(i * LINE_BYTES))
}

/// Returns the two words of entry `i` of a line.
#[inline(always)]
#[must_use]
pub const fn slot(line: Offset, i: u64) -> Slot {
    Slot { signature: line.plus(8 * i), position: line.plus(32 + 8 * i) }
}

/// Returns the entry whose position word is at `position`, or `None` if that is not the place of a position word.
#[must_use]
pub const fn slot_of(position: Offset) -> Option<Slot> {
    let at = position.0 % LINE_BYTES;
    if at < 32 || !at.is_multiple_of(8) { None } else { Some(slot_at(position)) }
}

/// Returns the entry whose position word is at `position`, which must be the place of a position word.
#[inline(always)]
#[must_use]
pub const fn slot_at(position: Offset) -> Slot {
    Slot { signature: Offset(position.0 - 32), position }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn home_and_overflow_cover_each_bucket_once() {
        for signature in [0, 1, 7, u64::MAX, 0x1234_5678_9ABC_DEF0, 0xFFFF_FFFF_8000_0003] {
            let (home, segment) = (Home::of(signature), Offset(SEGMENT_BYTES));
            let ways = [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further]
                .map(|way| home.lines(way, segment).collect::<Vec<_>>());
            assert_eq!(ways.each_ref().map(Vec::len), [3, 4, 7]);
            let all: HashSet<_> = ways.into_iter().flatten().chain([home.offset(segment)]).collect();
            assert_eq!(all.len(), 15);
            assert!(all.iter().all(|line| entry_lines(segment).any(|entry| entry == *line)));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and slow")]
    fn homes_are_spread_evenly() {
        let mut counts = [0u32; (PAIR_COUNT * PAIR_LINE_COUNT) as usize];
        for i in 0..248_000u64 {
            let home =
                Home::of(i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93));
            counts[(home.pair * PAIR_LINE_COUNT + home.line) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (800..1200).contains(&count)), "{counts:?}");
    }
}
