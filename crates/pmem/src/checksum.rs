//! The checksum of the format: CRC-32C (Castagnoli), computed by the processor's instruction if it has one.
//!
//! Written here, not imported from a crate, for two reasons. The checksum is on the write path of every item, where
//! the crates measured cost 5x to 10x as much for 272 bytes (dispatch per call). And core-only crates need it
//! (`docs/decisions/0006-hash-with-seeded-rapidhash-and-checksum-with-our-own-crc-32c.md`).

use crate::arch;

/// Continues the CRC-32C `seed` over `bytes`. `crc32c(0, bytes)` is the standard checksum of `bytes`.
#[must_use]
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !arch::crc32c_of_many(!seed, bytes)
}

/// A running CRC-32C over several pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// Returns the running checksum whose value is `seed`.
    #[inline(always)]
    #[must_use]
    pub const fn from_value(seed: u32) -> Checksum {
        Checksum(seed)
    }

    /// Continues over `bytes`.
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Checksum {
        Checksum(crc32c(self.0, bytes))
    }

    /// Returns the checksum of the concatenation of `parts`, like one update per part but with one check of the
    /// processor's features. For short parts, inlined: from [`MANY_BYTES`] on, an update is faster.
    #[inline(always)]
    #[must_use]
    pub fn of<const COUNT: usize>(parts: [&[u8]; COUNT]) -> Checksum {
        Checksum(!arch::crc32c(!0, parts))
    }

    /// Like [`Checksum::of`], for a word, half a word, and a usually short rest, with the fewest instructions.
    #[inline(always)]
    #[must_use]
    pub fn in_line(first: &[u8; 8], second: &[u8; 4], rest: &[u8]) -> Checksum {
        Checksum(!arch::crc32c_in_line(!0, first, second, rest))
    }

    /// Continues over a fixed number of bytes: a few processor instructions for a word or two.
    #[inline(always)]
    #[must_use]
    pub fn update_with<const COUNT: usize>(self, bytes: &[u8; COUNT]) -> Checksum {
        Checksum(!arch::crc32c(!self.0, [&bytes[..]]))
    }

    /// Returns the checksum of everything so far.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0
    }
}

/// Length from which calling the checksum function pays. Below, an item's beginning and end are half of the usual
/// cost.
pub const MANY_BYTES: usize = 512;

/// The bit-reflected Castagnoli polynomial.
pub(crate) const POLYNOMIAL: u32 = 0x82F6_3B78;

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The definition, a byte at a time, for processors without the instruction. Accepts and returns the inverted
/// remainder.
pub(crate) fn crc32c_by_table(remainder: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(remainder, |crc, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(0, &[0xFF; 32]), 0x62A8_AB43);
    }

    fn cut(bytes: &[u8]) -> Option<(&[u8; 8], &[u8; 4], &[u8])> {
        let (first, rest) = bytes.split_first_chunk()?;
        let (second, rest) = rest.split_first_chunk()?;
        Some((first, second, rest))
    }

    const LEN_BYTES_MAX: usize = 4096;

    /// Returns bytes without a pattern, enough for the longest length at every alignment.
    fn bytes() -> Vec<u8> {
        let mut word = 1u64;
        let next = |_| {
            word = word.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (word >> 56) as u8
        };
        (0..LEN_BYTES_MAX + 64).map(next).collect()
    }

    /// Compares each way to compute the remainder of one part.
    fn check_whole(seed: u32, piece: &[u8], wanted: u32) {
        let place = (piece.as_ptr().addr() % 64, piece.len());
        assert_eq!(arch::crc32c_of_many(seed, piece), wanted, "(offset in a line, bytes): {place:?}");
        assert_eq!(arch::crc32c(seed, [piece]), wanted, "(offset in a line, bytes): {place:?}");
        let Some((first, second, rest)) = cut(piece) else { return };
        assert_eq!(arch::crc32c_in_line(seed, first, second, rest), wanted, "(offset in a line, bytes): {place:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no instruction, and the table is slow")]
    fn lengths_and_alignments_agree_with_definition() {
        let bytes = bytes();
        for start in 0..64 {
            let seed = [!0, 0, 1, 0x8765_4321][start % 4];
            let mut wanted = seed;
            for end in start..=start + LEN_BYTES_MAX {
                check_whole(seed, &bytes[start..end], wanted);
                wanted = crc32c_by_table(wanted, &bytes[end..][..1]);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        #[cfg_attr(miri, ignore = "there is no instruction, and the table is slow")]
        fn parts_agree_with_the_definition(
            seed in any::<u32>(), start in 0..64_usize, ends in any::<[u16; 3]>(), bytes in Just(bytes()),
        ) {
            let mut ends = ends.map(|end| start + usize::from(end) % (LEN_BYTES_MAX + 1));
            ends.sort_unstable();
            let parts = [&bytes[start..ends[0]], &bytes[ends[0]..ends[1]], &bytes[ends[1]..ends[2]]];
            let wanted = crc32c_by_table(seed, &bytes[start..ends[2]]);
            prop_assert_eq!(arch::crc32c(seed, parts), wanted);
            prop_assert_eq!(parts.into_iter().fold(seed, arch::crc32c_of_many), wanted);
            let sum = parts.into_iter().fold(Checksum::from_value(!seed), Checksum::update);
            prop_assert_eq!(sum.value(), !wanted);
            prop_assert_eq!(Checksum::of(parts).value(), crc32c(0, &bytes[start..ends[2]]));
        }
    }
}
