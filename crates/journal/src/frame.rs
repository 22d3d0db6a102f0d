//! Frames: the unit of appending to the log. A frame counts completely or not at all.
//!
//! ```text
//!        0 ┌───────────────┬───────────────┬───────────────────────────────┐
//!          │ crc32c      4 │ entry bytes 4 │ sequence                    8 │
//!       16 ├───────────────┴───────────────┼───────────────────────────────┤
//!          │ tag                         8 │ mark                        8 │  entries, one after the other
//!       32 └───────────────────────────────┴───────────────────────────────┘
//!
//!          entry:
//!        0 ┌───────────────────────────────┬──────────────────────────────
//!          │ offset 6, length 2            │ the bytes, then zero to a multiple of 8
//!        8 └───────────────────────────────┴──────────────────────────────
//! ```
//!
//! The mark is a number up to which the frame's writer knew all frames to be durable: all frames before that
//! number. So one of these frames that is not intact is damaged; a frame at or behind every mark may also have been
//! on its way when a crash came (`scan`). In version 1 there is no mark, and entries begin at byte 24.
//!
//! An entry without bytes sets the region's length to its offset; the base is durably that long. The checksum
//! covers everything behind it. Numbers are little-endian.

use pmem::{Checksum, Offset};

use crate::File;
use crate::canary;
use crate::segment::{Header, MARKS_VERSION};

/// Length of a frame's header, which precedes its entries.
pub const FRAME_HEADER_BYTES: usize = 32;

/// Length of the header in version 1.
const UNMARKED_HEADER_BYTES: usize = 24;

/// Length of an entry's header, which precedes its bytes.
pub const ENTRY_HEADER_BYTES: usize = 8;

const OFFSET_BITS: u32 = 48;

/// The longest entry that the length field can describe, in complete words.
pub(crate) const ENTRY_BYTES_MAX: usize = u16::MAX as usize & !7;

/// The content of a frame's header, without its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seal {
    pub(crate) sequence: u64,
    /// The tag of the segment to which it is written.
    pub(crate) tag: u64,
    /// The number before which all frames are durable.
    pub(crate) mark: u64,
}

/// Fills in the header of `frame`, whose first [`FRAME_HEADER_BYTES`] are reserved for it.
pub(crate) fn seal_frame(frame: &mut [u8], seal: Seal) {
    let entry_bytes = (frame.len() - FRAME_HEADER_BYTES) as u32;
    frame[4..8].copy_from_slice(&entry_bytes.to_le_bytes());
    frame[8..16].copy_from_slice(&seal.sequence.to_le_bytes());
    frame[16..24].copy_from_slice(&seal.tag.to_le_bytes());
    frame[24..32].copy_from_slice(&seal.mark.to_le_bytes());
    let checksum = checksum(frame);
    frame[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns a frame that changes nothing in a region of `region_bytes` bytes, only for its mark.
pub(crate) fn mark_frame(region_bytes: u64, seal: Seal) -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    push_entry_head(&mut frame, Offset(region_bytes), 0);
    seal_frame(&mut frame, seal);
    frame
}

fn checksum(frame: &[u8]) -> u32 {
    Checksum::default().update(&frame[4..]).value()
}

/// The checks of a reader of frames. Broken variants omit some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demands {
    pub(crate) number: bool,
    pub(crate) checksum: bool,
    pub(crate) marks: bool,
}

impl Demands {
    /// Returns the checks for the frames in `log`.
    pub(crate) fn on<F: File>(log: &F) -> Demands {
        Demands {
            number: !log.breaks(canary::OLD_RECORDS_REPLAYED),
            checksum: !log.breaks(canary::TORN_RECORD_ACCEPTED),
            marks: !log.breaks(canary::CUT_TAKEN_FOR_END),
        }
    }
}

/// An intact frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) sequence: u64,
    pub(crate) mark: u64,
    pub(crate) len_bytes: usize,
    pub(crate) entries: &'a [u8],
}

/// The expected form of a segment's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    is_marked: bool,
    tag: u64,
    demands: Demands,
}

impl Frames {
    /// Returns the form of the frames in the segment with this header.
    pub(crate) fn of(header: &Header, demands: Demands) -> Frames {
        Frames { is_marked: header.version >= MARKS_VERSION, tag: header.tag(), demands }
    }

    /// Returns the frame at the start of `bytes` if it is intact and has this number.
    pub(crate) fn numbered<'a>(&self, bytes: &'a [u8], sequence: u64) -> Option<Frame<'a>> {
        self.whole(bytes, |found| found == sequence)
    }

    /// Returns the frame at the start of `bytes` if it is intact and has this number or a greater one.
    pub(crate) fn numbered_from<'a>(&self, bytes: &'a [u8], sequence: u64) -> Option<Frame<'a>> {
        self.whole(bytes, |found| found >= sequence)
    }

    fn whole<'a>(&self, bytes: &'a [u8], is_number: impl Fn(u64) -> bool) -> Option<Frame<'a>> {
        let header_bytes = if self.is_marked { FRAME_HEADER_BYTES } else { UNMARKED_HEADER_BYTES };
        let (sequence, tag) = (u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        if self.demands.number && !(tag == self.tag && is_number(sequence)) {
            return None;
        }
        let entry_bytes = u32_at(bytes, 4)? as usize;
        let frame = bytes.get(..header_bytes.checked_add(entry_bytes)?)?;
        let is_whole = u32_at(frame, 0)? == checksum(frame) || !self.demands.checksum;
        let mark = if self.is_marked { u64_at(frame, 24)? } else { 0 };
        let whole = Frame { sequence, mark, len_bytes: frame.len(), entries: &frame[header_bytes..] };
        (entry_bytes > 0 && is_whole).then_some(whole)
    }
}

/// Returns the number and tag of the frame at the start of `bytes` if it is intact and has a mark, in any segment.
pub(crate) fn any_frame(bytes: &[u8]) -> Option<(u64, u64)> {
    let (sequence, tag) = (u64_at(bytes, 8)?, u64_at(bytes, 16)?);
    let frames = Frames { is_marked: true, tag, demands: Demands { number: true, checksum: true, marks: true } };
    frames.numbered(bytes, sequence).map(|_| (sequence, tag))
}

/// Appends the header of an entry of `len_bytes` at `at`.
pub(crate) fn push_entry_head(into: &mut Vec<u8>, at: Offset, len_bytes: usize) {
    debug_assert!(at.0 >> OFFSET_BITS == 0 && len_bytes <= ENTRY_BYTES_MAX);
    into.extend((at.0 | (len_bytes as u64) << OFFSET_BITS).to_le_bytes());
}

/// Appends zeros up to a complete word.
pub(crate) fn pad(into: &mut Vec<u8>) {
    into.resize(into.len().next_multiple_of(8), 0);
}

/// Returns consecutive entries as offsets and bytes; `None` for an entry that does not fit.
pub(crate) fn entries(mut rest: &[u8]) -> impl Iterator<Item = Option<(u64, &[u8])>> {
    std::iter::from_fn(move || {
        let head = u64_at(rest, 0)?;
        let (offset, len) = (head & ((1 << OFFSET_BITS) - 1), (head >> OFFSET_BITS) as usize);
        let bytes = rest.get(ENTRY_HEADER_BYTES..ENTRY_HEADER_BYTES + len);
        rest = rest.get(ENTRY_HEADER_BYTES + len.next_multiple_of(8)..).unwrap_or_default();
        Some(bytes.map(|bytes| (offset, bytes)))
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Demands = Demands { number: true, checksum: true, marks: true };
    const SEAL: Seal = Seal { sequence: 7, tag: 3, mark: 5 };
    const FRAMES: Frames = Frames { is_marked: true, tag: 3, demands: ALL };

    fn frame() -> Vec<u8> {
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        for (at, bytes) in [(5, &b"abc"[..]), (64, b"12345678"), (1 << 40, b"")] {
            push_entry_head(&mut frame, Offset(at), bytes.len());
            frame.extend(bytes);
            pad(&mut frame);
        }
        seal_frame(&mut frame, SEAL);
        frame
    }

    #[test]
    fn entries_come_back_in_their_order() {
        let mut bytes = frame();
        let len = bytes.len();
        bytes.extend([9; 40]);
        let found = FRAMES.numbered(&bytes, 7).unwrap();
        assert_eq!((found.len_bytes, found.sequence, found.mark), (len, 7, 5));
        let read: Vec<_> = entries(found.entries).map(Option::unwrap).collect();
        assert_eq!(read, [(5, &b"abc"[..]), (64, b"12345678"), (1 << 40, b"")]);
        assert_eq!(any_frame(&bytes), Some((7, 3)));
    }

    #[test]
    fn bit_flips_and_cuts_are_detected() {
        let sound = frame();
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!((FRAMES.numbered(&bytes, 7), any_frame(&bytes)), (None, None), "bit {bit}");
        }
        for len in 0..sound.len() {
            assert_eq!(FRAMES.numbered(&sound[..len], 7), None, "cut to {len}");
        }
    }

    #[test]
    fn frame_of_another_number_is_none() {
        assert_eq!(FRAMES.numbered(&frame(), 8), None);
        assert_eq!(Frames { tag: 2, ..FRAMES }.numbered(&frame(), 7), None);
        assert_eq!(FRAMES.numbered_from(&frame(), 6).map(|frame| frame.sequence), Some(7));
        assert_eq!(FRAMES.numbered_from(&frame(), 8), None);
        assert_eq!(Frames { tag: 0, ..FRAMES }.numbered(&[0; 64], 0), None);
    }

    #[test]
    fn frames_of_version_1_have_no_mark() {
        let mut frame = [[0; UNMARKED_HEADER_BYTES].to_vec(), 9u64.to_le_bytes().to_vec()].concat();
        frame[4..8].copy_from_slice(&8u32.to_le_bytes());
        frame[8..16].copy_from_slice(&7u64.to_le_bytes());
        frame[16..24].copy_from_slice(&3u64.to_le_bytes());
        let checksum = checksum(&frame);
        frame[..4].copy_from_slice(&checksum.to_le_bytes());
        let found = Frames { is_marked: false, ..FRAMES }.numbered(&frame, 7).unwrap();
        assert_eq!((found.mark, found.len_bytes, found.entries), (0, frame.len(), &9u64.to_le_bytes()[..]));
        assert_eq!(FRAMES.numbered(&frame, 7), None);
    }
}
