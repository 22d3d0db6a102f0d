//! Segments: equal pieces of the log file, written from their start to their end, and used again.
//!
//! ```text
//!        0 ┌───────────────────────────────┬───────────────┬───────────────┐
//!          │ magic                       8 │ version     4 │ segment bytes4│
//!       16 ├───────────────────────────────┴───────────────┴───────────────┤
//!          │ identity of the journal                                    16 │
//!       32 ├───────────────────────────────┬───────────────────────────────┤
//!          │ ordinal                     8 │ first sequence              8 │
//!       48 ├───────────────────────────────┼───────────────────────────────┤
//!          │ oldest ordinal              8 │ region bytes                8 │
//!       64 ├───────────────┬───────────────┼───────────────────────────────┘
//!          │ salt        4 │ crc32c      4 │  over the 68 bytes before it
//!       72 └───────────────┴───────────────┘
//!     4096   frames, until one is missing or of another number
//! ```
//!
//! The header has a block to itself, so that no write of a frame rewrites it. It is written whole, and durable before the
//! first frame of its segment is written.
//!
//! Version 1 had no salt (zero), and frames without a mark. A log may have segments of both: a program that knows version 2
//! begins no other, and goes on in a new segment whenever it opens a log for writing.

use pmem::crc32c;

/// The first bytes of a segment.
pub const MAGIC: [u8; 8] = *b"\x89hikvj\r\n";
/// The version that this program writes; it reads all before it.
pub const VERSION: u32 = 2;
/// The first version whose frames say what was durable when they were written.
pub(crate) const MARKS_VERSION: u32 = 2;
/// Where frames begin: a block of most file systems, larger than a sector of any disk.
pub const FRAMES_START_BYTES: u64 = 4096;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 72;

const CHECKED_BYTES: usize = 68;

/// A segment's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// That of the segment's frames.
    pub(crate) version: u32,
    pub(crate) segment_bytes: u32,
    /// Whose log this is; the base's is the same.
    pub(crate) identity: [u8; 16],
    /// Counts the segments since the journal was made: never used twice.
    pub(crate) ordinal: u64,
    /// The number of the segment's first frame. All frames before it are whole, and durable.
    pub(crate) first_sequence: u64,
    /// The oldest segment that replay needs: what came before is durable in the base.
    pub(crate) oldest: u64,
    /// How long the region was, at least, when the segment was begun. The base is durably as long.
    pub(crate) region_bytes: u64,
    /// What nobody knows who stores values.
    pub(crate) salt: u32,
}

/// Why there is no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoHeader {
    /// Nothing, or damage, or something else.
    None,
    /// It is whole, and of another version.
    Version(u32),
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &self.version.to_le_bytes());
        put(12, &self.segment_bytes.to_le_bytes());
        put(16, &self.identity);
        put(32, &self.ordinal.to_le_bytes());
        put(40, &self.first_sequence.to_le_bytes());
        put(48, &self.oldest.to_le_bytes());
        put(56, &self.region_bytes.to_le_bytes());
        put(64, &self.salt.to_le_bytes());
        let checksum = crc32c(0, &bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, NoHeader> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != MAGIC || crc32c(0, &bytes[..CHECKED_BYTES]) != u32_at(CHECKED_BYTES) {
            return Err(NoHeader::None);
        }
        if !(1..=VERSION).contains(&u32_at(8)) {
            return Err(NoHeader::Version(u32_at(8)));
        }
        Ok(Header {
            version: u32_at(8),
            segment_bytes: u32_at(12),
            identity: std::array::from_fn(|i| bytes[16 + i]),
            ordinal: u64_at(32),
            first_sequence: u64_at(40),
            oldest: u64_at(48),
            region_bytes: u64_at(56),
            salt: u32_at(64),
        })
    }

    /// What each frame of the segment has, and no other bytes of the log, but by a chance of one in four thousand million.
    pub(crate) fn tag(&self) -> u64 {
        if self.version < MARKS_VERSION { self.ordinal } else { tag(self.ordinal, self.salt) }
    }
}

/// The tag of frames that have a mark.
fn tag(ordinal: u64, salt: u32) -> u64 {
    ordinal & u64::from(u32::MAX) | u64::from(salt) << u32::BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_every_flipped_bit_is_noticed() {
        let header = Header {
            version: VERSION,
            segment_bytes: 1 << 20,
            identity: [7; 16],
            ordinal: 5,
            first_sequence: 900,
            oldest: 3,
            region_bytes: 1 << 33,
            salt: 0xfeed,
        };
        let sound = header.encode();
        assert_eq!(Header::decode(&sound), Ok(header));
        assert_eq!(header.tag(), 0xfeed_0000_0005);
        let old = Header { version: 1, salt: 0, ..header };
        assert_eq!((Header::decode(&old.encode()), old.tag()), (Ok(old), 5));
        for version in [0, VERSION + 1] {
            let other = Header { version, ..header };
            assert_eq!(Header::decode(&other.encode()), Err(NoHeader::Version(version)));
        }
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = sound;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&bytes), Err(NoHeader::None), "bit {bit}");
        }
        assert_eq!(Header::decode(&[0; HEADER_BYTES]), Err(NoHeader::None));
    }
}
