//! Segments of lanes' logs, and writing their lines.

use std::sync::atomic::Ordering;

use pmem::{Checksum, LINE_BYTES, Medium, Offset, seal};

use crate::bytes::{Line, before_check, is_sealed, put_u64, salt, seal_line, u64_at};
use crate::layout::ENTRY_BYTES;

/// A segment's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// The segment's offset.
    pub(crate) at: Offset,
    pub(crate) lane: u64,
    pub(crate) opening: u64,
    /// The sequence of its first entry.
    pub(crate) first: u64,
    /// The previous segment, or null.
    pub(crate) previous: Offset,
}

impl Segment {
    pub(super) fn to_line(self, uuid: &[u8; 16]) -> Line {
        let mut line = [0; ENTRY_BYTES];
        put_u64(&mut line, 0, self.lane);
        put_u64(&mut line, 8, self.opening);
        put_u64(&mut line, 16, self.first);
        put_u64(&mut line, 24, self.previous.0);
        seal_line(&mut line, salt(uuid), &[]);
        line
    }

    /// Returns the segment at `at`, if the line is a valid header.
    pub(crate) fn from_line(line: &Line, at: Offset, uuid: &[u8; 16]) -> Option<Segment> {
        is_sealed(line, salt(uuid), &[]).then(|| Segment {
            at,
            lane: u64_at(line, 0),
            opening: u64_at(line, 8),
            first: u64_at(line, 16),
            previous: Offset(u64_at(line, 24)),
        })
    }

    /// Returns the start of the checksums of its entries. It excludes the header's own checksum, after which the state
    /// of every CRC would be the same.
    pub(crate) fn salt(self, uuid: &[u8; 16]) -> Checksum {
        salt(uuid).update(before_check(&self.to_line(uuid)))
    }

    /// Returns the offset of the entry of this sequence.
    pub(crate) fn entry_at(self, sequence: u64) -> Offset {
        self.at.plus((1 + sequence - self.first) * LINE_BYTES)
    }
}

/// Writes a line and flushes it.
#[inline(always)]
pub(crate) fn write_line<M: Medium>(medium: &M, at: Offset, line: &Line) {
    // SAFETY: the caller holds the lane's lock or has exclusive use of the store, and readers do not read logs.
    unsafe { medium.stream(at, &[line]) };
}

/// Stores a sealed word and flushes it.
pub(crate) fn store_word<M: Medium>(medium: &M, at: Offset, payload: u64) {
    medium.store(at, seal(payload), Ordering::Release);
    medium.flush(at.span(8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_never_share_entries() {
        let segment = Segment { at: Offset(64), lane: 1, opening: 1, first: 1, previous: Offset(128) };
        let others = [
            Segment { lane: 2, ..segment },
            Segment { opening: 2, ..segment },
            Segment { first: 2, ..segment },
            Segment { previous: Offset(64), ..segment },
        ];
        let uuid = [7; 16];
        for other in others {
            assert_ne!(segment.salt(&uuid).value(), other.salt(&uuid).value(), "{other:?}");
        }
        assert_eq!(Segment::from_line(&segment.to_line(&uuid), segment.at, &uuid), Some(segment));
        assert_eq!(Segment::from_line(&segment.to_line(&uuid), segment.at, &[8; 16]), None);
    }
}
