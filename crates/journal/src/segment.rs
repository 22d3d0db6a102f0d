//! Segments: equal pieces of the log file, each written from start to end, and used again.
//!
//! ```text
//!        0 ┌───────────────────────────────┬───────────────┬───────────────┐
//!          │ magic                       8 │ version     4 │ segment bytes4│
//!       16 ├───────────────────────────────┴───────────────┴───────────────┤
//!          │ identity of the journal                                    16 │
//!       32 ├───────────────────────────────┬───────────────────────────────┤
//!          │ ordinal                     8 │ mark                        8 │
//!       48 ├───────────────┬───────────────┼───────────────────────────────┤
//!          │ older segm. 4 │ older frames 4│ region bytes                8 │
//!       64 ├───────────────┬───────────────┼───────────────────────────────┘
//!          │ salt        4 │ crc32c      4 │  over the 68 bytes before it
//!       72 └───────────────┴───────────────┘
//!     4096   frames, until one is missing or of another number
//! ```
//!
//! The header has a block of its own: no write of a frame rewrites it. A header is written whole, and durable before the first
//! frame of its segment is written: mostly while the segment before is still written (`ahead`). So the header does not know with
//! which number the segment's frames begin, but what was durable: its mark. Where the number is known, behind the end of a log
//! that was opened or closed, the header says that the mark is that number.
//!
//! Version 2 had the number of the first frame in place of the mark, and the oldest segment's ordinal in place of the counts, since
//! all frames of the segment before were durable. Version 1 had no salt (zero), either, and frames without a mark. A log may
//! have segments of all: a program that knows version 3 begins no other, and goes on in a new segment whenever it opens a log
//! for writing.

use pmem::crc32c;

/// The first bytes of a segment.
pub const MAGIC: [u8; 8] = *b"\x89hikvj\r\n";
/// The version that this program writes; it reads all before it.
pub const VERSION: u32 = 3;
/// The first version whose frames say what was durable when they were written.
pub(crate) const MARKS_VERSION: u32 = 2;
/// The first version whose headers may be older than the last frames of the segment before.
const AHEAD_VERSION: u32 = 3;
/// Among the older segments' count: the mark is the number of the segment's first frame.
const IS_FIRST: u32 = 1 << 31;
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
    /// All frames before this number were durable when the header was written.
    pub(crate) mark: u64,
    /// Whether the segment's first frame has that number: whatever an older segment has from there on does not count.
    pub(crate) is_first: bool,
    /// The oldest segment that replay needs: what came before is durable in the base.
    pub(crate) oldest: u64,
    /// The number of that one's first frame; of versions 1 and 2 it says so itself.
    pub(crate) start: u64,
    /// How long the region was, at least, when the segment was begun. The base is durably as long.
    pub(crate) region_bytes: u64,
    /// Bits that a client who stores values cannot know.
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
        put(40, &self.mark.to_le_bytes());
        if self.version < AHEAD_VERSION {
            put(48, &self.oldest.to_le_bytes());
        } else {
            let older_segments = (self.ordinal - self.oldest) as u32;
            put(48, &(older_segments | if self.is_first { IS_FIRST } else { 0 }).to_le_bytes());
            put(52, &((self.mark - self.start) as u32).to_le_bytes());
        }
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
        let (ordinal, mark) = (u64_at(32), u64_at(40));
        let (is_first, oldest, start) = if u32_at(8) < AHEAD_VERSION {
            (true, u64_at(48), 0)
        } else {
            let older = [u32_at(48) & !IS_FIRST, u32_at(52)].map(u64::from);
            (u32_at(48) & IS_FIRST != 0, ordinal.saturating_sub(older[0]), mark.saturating_sub(older[1]))
        };
        Ok(Header {
            version: u32_at(8),
            segment_bytes: u32_at(12),
            identity: std::array::from_fn(|i| bytes[16 + i]),
            ordinal,
            mark,
            is_first,
            oldest,
            start,
            region_bytes: u64_at(56),
            salt: u32_at(64),
        })
    }

    /// The number at which replay begins if this header is the newest, and `oldest` that of the oldest segment that it needs.
    pub(crate) fn start_at(&self, oldest: &Header) -> u64 {
        match (self.version < AHEAD_VERSION, oldest.is_first) {
            (true, true) => oldest.mark,
            (true, false) => oldest.start,
            (false, _) => self.start,
        }
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
    fn segment_header_round_trip_and_bit_flips() {
        let header = Header {
            version: VERSION,
            segment_bytes: 1 << 20,
            identity: [7; 16],
            ordinal: 5,
            mark: 900,
            is_first: false,
            oldest: 3,
            start: 850,
            region_bytes: 1 << 33,
            salt: 0xfeed,
        };
        let sound = header.encode();
        assert_eq!(Header::decode(&sound), Ok(header));
        assert_eq!(header.tag(), 0xfeed_0000_0005);
        let first = Header { is_first: true, start: 900, ..header };
        assert_eq!(Header::decode(&first.encode()), Ok(first));
        for (version, salt, tag) in [(1, 0, 5), (2, 0xfeed, 0xfeed_0000_0005)] {
            let old = Header { version, salt, is_first: true, start: 0, ..header };
            assert_eq!((Header::decode(&old.encode()), old.tag()), (Ok(old), tag));
        }
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
