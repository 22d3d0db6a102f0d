//! Segments: pieces of the log file of equal length, each written from start to end, and reused.
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
//! The header has a block of its own: no write of a frame rewrites it. A header is durable before the first frame
//! of its segment is written, mostly while the segment before is still being written (`ahead`). So the header does
//! not contain the number at which the segment's frames begin, but the number before which all frames were durable:
//! its mark. If the first number is known, behind the end of a log that was opened or closed, the header records
//! that the mark is that number.
//!
//! Version 2 had the number of the first frame instead of the mark, and the oldest segment's ordinal instead of the
//! counts, because all frames of the segment before were durable. Version 1 also had no salt (zero), and frames
//! without a mark. A log may have segments of all versions: a program that supports version 3 begins no other
//! segments, and starts a new segment whenever it opens a log for writing.

use pmem::crc32c;

/// The first bytes of a segment.
pub const MAGIC: [u8; 8] = *b"\x89hikvj\r\n";
/// The version that this program writes; it also reads all earlier versions.
pub const VERSION: u32 = 3;
/// The first version whose frames have a mark.
pub(crate) const MARKS_VERSION: u32 = 2;
/// The first version whose headers may be older than the last frames of the segment before.
const AHEAD_VERSION: u32 = 3;
/// A bit in the count of older segments: the mark is the number of the segment's first frame.
const IS_FIRST: u32 = 1 << 31;
/// Position of the first frame: a block of most file systems, larger than a sector of any disk.
pub const FRAMES_START_BYTES: u64 = 4096;
/// Length of a header.
pub const HEADER_BYTES: usize = 72;

const CHECKED_BYTES: usize = 68;

/// A segment's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// The version of the header and the segment's frames.
    pub(crate) version: u32,
    pub(crate) segment_bytes: u32,
    /// The identity of the journal; the base's is the same.
    pub(crate) identity: [u8; 16],
    /// Number of the segment since the journal was created: never used twice.
    pub(crate) ordinal: u64,
    /// All frames before this number were durable when the header was written.
    pub(crate) mark: u64,
    /// True if the segment's first frame has that number: frames of older segments from that number on do not
    /// count.
    pub(crate) is_first: bool,
    /// The ordinal of the oldest segment that replay needs: earlier segments are durable in the base.
    pub(crate) oldest: u64,
    /// The number of that segment's first frame; in versions 1 and 2 that segment's own header contains it.
    pub(crate) start: u64,
    /// The region's length, at least, when the segment was begun. The base is durably that long.
    pub(crate) region_bytes: u64,
    /// Bits that a client who stores values cannot know.
    pub(crate) salt: u32,
}

/// The reason why there is no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoHeader {
    /// The bytes are empty, damaged, or something else.
    None,
    /// The header is intact, and of another version.
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

    /// Returns the number at which replay begins if this header is the newest; `oldest` is the header of the oldest
    /// segment needed.
    pub(crate) fn start_at(&self, oldest: &Header) -> u64 {
        match (self.version < AHEAD_VERSION, oldest.is_first) {
            (true, true) => oldest.mark,
            (true, false) => oldest.start,
            (false, _) => self.start,
        }
    }

    /// Returns the tag of the segment's frames. Other bytes of the log have it only with a chance of one in four
    /// thousand million.
    pub(crate) fn tag(&self) -> u64 {
        if self.version < MARKS_VERSION { self.ordinal } else { tag(self.ordinal, self.salt) }
    }
}

/// Returns the tag of frames that have a mark.
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
