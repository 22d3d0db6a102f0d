//! The layout of lanes and runs.
//!
//! ```text
//! line 16 + lane of the engine area
//!   +0  number, sealed, 8
//!   +8  place of the log, sealed, 8        an extent, of one unit except for the longest changes
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
//!   +8  the words' old content
//! ```

use heap::layout::{CHUNK_HEADER_BYTES, ENGINE_AREA, UNIT_BYTES};
use pmem::{LINE_BYTES, Offset, Span};

/// Number of the engine area's lines before the first lane's; the engine uses them.
pub const FIRST_LANE_LINE: u64 = 16;
/// The largest number of lanes of a region.
pub const LANE_COUNT_MAX: usize = 64;

/// Length of a log: the capacity of an extent of one unit.
pub const LOG_BYTES: u64 = UNIT_BYTES - CHUNK_HEADER_BYTES;
/// Length of a run's header, which precedes its ranges.
pub const RUN_HEADER_BYTES: u64 = 24;
/// Length of a range's header, which precedes its words.
pub const RANGE_HEADER_BYTES: u64 = 8;

const OFFSET_BITS: u32 = 48;

/// Returns the offset of the lane's number.
#[must_use]
pub const fn number_at(lane: usize) -> Offset {
    ENGINE_AREA.plus((FIRST_LANE_LINE + lane as u64) * LINE_BYTES)
}

/// Returns the offset of the word that holds the place of the lane's log.
#[must_use]
pub const fn log_at(lane: usize) -> Offset {
    number_at(lane).plus(8)
}

/// Returns the offset of the word that names the word that the lane is changing.
#[must_use]
pub const fn intent_at(lane: usize) -> Offset {
    number_at(lane).plus(16)
}

/// Returns the length of the ranges in a run, headers included.
pub fn ranges_bytes(ranges: impl Iterator<Item = Span>) -> u64 {
    ranges.map(|range| RANGE_HEADER_BYTES + range.len_bytes).sum()
}

/// Returns a range's header.
///
/// # Panics
/// If the range does not consist of whole words, or has too many.
pub(crate) fn range_header(range: Span) -> u64 {
    let words = range.len_bytes / 8;
    assert!(range.start.0.is_multiple_of(8) && range.len_bytes.is_multiple_of(8) && words < 1 << 16);
    assert!(range.start.0 < 1 << OFFSET_BITS);
    range.start.0 | words << OFFSET_BITS
}

/// Returns the range that a header describes.
pub(crate) fn range_of(header: u64) -> Span {
    Offset(header & ((1 << OFFSET_BITS) - 1)).span((header >> OFFSET_BITS) * 8)
}

/// Returns a run's first bytes, up to the checksum's word.
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
