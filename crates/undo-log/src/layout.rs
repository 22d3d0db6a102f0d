//! Where lanes and runs lie.
//!
//! ```text
//! line 16 + lane of the engine area
//!   +0  number, sealed, 8
//!   +8  place of the log, sealed, 8        an extent, of one unit but for the longest changes
//!   +16 intent, sealed, 8                  the word that is being changed; never flushed; or 0
//!   +24 unused to 64
//!
//! a log: one run
//!   +0  number, 8
//!   +8  bytes of the ranges, 4
//!   +12 lane, 4
//!   +16 crc32c, 4                          of bytes 0 to 16 and of the ranges
//!   +20 zero, 4
//!   +24 ranges, one after the other
//!
//! a range
//!   +0  length in words (16 bits), then offset (48 bits): 8
//!   +8  what the words held before
//! ```

use heap::layout::{CHUNK_HEADER_BYTES, ENGINE_AREA, UNIT_BYTES};
use pmem::{LINE_BYTES, Offset, Span};

/// The engine area's lines before the first lane's: what the engine itself has there.
pub const FIRST_LANE_LINE: u64 = 16;
/// The most lanes of a region.
pub const LANE_COUNT_MAX: usize = 64;

/// A log's length: what an extent of one unit has room for.
pub const LOG_BYTES: u64 = UNIT_BYTES - CHUNK_HEADER_BYTES;
/// A run before its ranges.
pub const RUN_HEADER_BYTES: u64 = 24;
/// A range before its words.
pub const RANGE_HEADER_BYTES: u64 = 8;

const OFFSET_BITS: u32 = 48;

/// Where the number of lane `lane` lies.
#[must_use]
pub const fn number_at(lane: usize) -> Offset {
    ENGINE_AREA.plus((FIRST_LANE_LINE + lane as u64) * LINE_BYTES)
}

/// Where the place of its log lies.
#[must_use]
pub const fn log_at(lane: usize) -> Offset {
    number_at(lane).plus(8)
}

/// Where it names the word that it is changing.
#[must_use]
pub const fn intent_at(lane: usize) -> Offset {
    number_at(lane).plus(16)
}

/// The bytes that the ranges of a run have.
pub fn ranges_bytes(ranges: impl Iterator<Item = Span>) -> u64 {
    ranges.map(|range| RANGE_HEADER_BYTES + range.len_bytes).sum()
}

/// A range's header.
///
/// # Panics
/// If the range is not of whole words, or of too many.
pub(crate) fn range_header(range: Span) -> u64 {
    let words = range.len_bytes / 8;
    assert!(range.start.0.is_multiple_of(8) && range.len_bytes.is_multiple_of(8) && words < 1 << 16);
    assert!(range.start.0 < 1 << OFFSET_BITS);
    range.start.0 | words << OFFSET_BITS
}

/// The range of a header.
pub(crate) fn range_of(header: u64) -> Span {
    Offset(header & ((1 << OFFSET_BITS) - 1)).span((header >> OFFSET_BITS) * 8)
}

/// A run's first bytes, but for the checksum's word.
pub(crate) fn run_head(number: u64, lane: usize, ranges_bytes: u64) -> [u8; 16] {
    (u128::from(number) | u128::from(ranges_bytes) << 64 | (lane as u128) << 96).to_le_bytes()
}

const _: () = {
    assert!(FIRST_LANE_LINE + (LANE_COUNT_MAX as u64) <= 256);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_comes_back() {
        for range in [Offset(8).span(8), Offset((1 << 40) - 8).span(524_280), Offset(64).span(0)] {
            assert_eq!(range_of(range_header(range)), range);
        }
    }

    #[test]
    fn run_lies_as_drawn() {
        let head = run_head(0x0807_0605_0403_0201, 0x100F_0E0D, 0x0C0B_0A09);
        assert_eq!(head, core::array::from_fn(|i| i as u8 + 1));
    }
}
