//! The layout of a clean image, from the start of its extent's item.
//!
//! ```text
//!    0 ┌───────────────────────────────┬───────────────┬───────────────┬───────────────────────────────┐
//!      │ magic                       8 │ version     2 │ generation  2 │ number                      4 │
//!   16 ├───────────────────────────────┼───────────────┴───────────────┼───────────────────────────────┤
//!      │ mark units    4 │ segments  4 │ free words                  4 │ flags                       4 │
//!   32 ├───────────────────────────────┼───────────────────────────────┼───────────────────────────────┤
//!      │ keys                        8 │ space checksum              4 │ order checksum              4 │
//!   48 ├───────────────────────────────┴───────────────────────────────┼───────────────────────────────┤
//!      │ zero                                                       12 │ checksum                    4 │
//!   64 ├───────────────────────────────────────────────────────────────┴───────────────────────────────┤
//!      │ free words: free space, chunk by chunk          (heap/src/free_words.rs)                       │
//!      ├───────────────────────────────────────────────────────────────────────────────────────────────┤
//!      │ 9 words per segment: its place and its counts   (partitioned_hash/counts.rs)                   │
//!      ├───────────────────────────────────────────────────────────────────────────────────────────────┤
//!      │ a word per key: the items' positions in key order, if the flag is set                          │
//!      └───────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The space checksum covers free words and segments, the order checksum the positions, and the last checksum the
//! header. So an opening without order does not read the positions.

use index::partitioned_hash::SEGMENT_COUNT_WORDS;
use pmem::crc32c;

/// The first bytes of an image.
pub const MAGIC: [u8; 8] = *b"hikv img";
/// The layout version; images of another version are ignored.
pub const VERSION: u16 = 1;
/// Bytes of the header: a line.
pub const HEADER_BYTES: usize = 64;
/// The flag of an image that holds the keys' order.
pub const FLAG_ORDER: u32 = 1;

const CHECKSUM_AT: usize = 60;

/// The header of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The store's generation.
    pub generation: u16,
    /// The number that the region's image word must have.
    pub number: u32,
    /// The high-water mark.
    pub mark_units: u32,
    /// Segments.
    pub segment_count: u32,
    /// Words of free space.
    pub free_word_count: u32,
    /// Positions; `None` in an image without the order.
    pub key_count: Option<u64>,
    /// CRC-32C of free words and segments.
    pub space_checksum: u32,
    /// CRC-32C of the positions; 0 if there are none.
    pub order_checksum: u32,
}

impl Header {
    /// Returns the stored bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(10, &self.generation.to_le_bytes());
        put(12, &self.number.to_le_bytes());
        put(16, &self.mark_units.to_le_bytes());
        put(20, &self.segment_count.to_le_bytes());
        put(24, &self.free_word_count.to_le_bytes());
        put(28, &self.key_count.map_or(0, |_| FLAG_ORDER).to_le_bytes());
        put(32, &self.key_count.unwrap_or(0).to_le_bytes());
        put(40, &self.space_checksum.to_le_bytes());
        put(44, &self.order_checksum.to_le_bytes());
        let checksum = crc32c(0, &bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a stored header; returns `None` unless it is intact and of this version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let u16_at = |at| u16::from_le_bytes(field(bytes, at));
        let u32_at = |at| u32::from_le_bytes(field(bytes, at));
        let is_whole = bytes[..8] == MAGIC && crc32c(0, &bytes[..CHECKSUM_AT]) == u32_at(CHECKSUM_AT);
        (is_whole && u16_at(8) == VERSION).then(|| Header {
            generation: u16_at(10),
            number: u32_at(12),
            mark_units: u32_at(16),
            segment_count: u32_at(20),
            free_word_count: u32_at(24),
            key_count: (u32_at(28) & FLAG_ORDER != 0).then(|| u64::from_le_bytes(field(bytes, 32))),
            space_checksum: u32_at(40),
            order_checksum: u32_at(44),
        })
    }

    /// Returns the bytes of free words and segments together.
    #[must_use]
    pub fn space_bytes(&self) -> u64 {
        (u64::from(self.free_word_count) + u64::from(self.segment_count) * SEGMENT_COUNT_WORDS as u64) * 8
    }

    /// Returns the bytes of header and all words; `None` if that exceeds any region.
    #[must_use]
    pub fn image_bytes(&self) -> Option<u64> {
        let keys_bytes = self.key_count.unwrap_or(0).checked_mul(8)?;
        (HEADER_BYTES as u64 + self.space_bytes()).checked_add(keys_bytes)
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

const _: () = assert!(CHECKSUM_AT + 4 == HEADER_BYTES && HEADER_BYTES.is_multiple_of(16) && SEGMENT_COUNT_WORDS == 9);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_header_round_trip_and_bit_flips() {
        let header = Header {
            generation: 0x0102,
            number: 3,
            mark_units: 4,
            segment_count: 5,
            free_word_count: 6,
            key_count: Some(7),
            space_checksum: 8,
            order_checksum: 9,
        };
        for header in [header, Header { key_count: None, ..header }] {
            let bytes = header.to_bytes();
            assert_eq!(Header::from_bytes(&bytes), Some(header));
            for bit in 0..HEADER_BYTES * 8 {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::from_bytes(&flipped), None, "bit {bit}");
            }
        }
    }
}
