//! Frames: what is appended to the log in one piece, and what counts whole or not at all.
//!
//! ```text
//!        0 ┌───────────────┬───────────────┬───────────────────────────────┐
//!          │ crc32c      4 │ entry bytes 4 │ sequence                    8 │
//!       16 ├───────────────┴───────────────┼───────────────────────────────┘
//!          │ segment's ordinal           8 │  entries, one after the other
//!       24 └───────────────────────────────┘
//!
//!          entry:
//!        0 ┌───────────────────────────────┬──────────────────────────────
//!          │ offset 6, length 2            │ the bytes, then zero to a multiple of 8
//!        8 └───────────────────────────────┴──────────────────────────────
//! ```
//!
//! An entry of no bytes says that the region has the length that its offset states; the base is durably as long. The checksum
//! covers everything behind it. Numbers are little-endian.

use pmem::{Canary, Checksum, Offset};

use crate::File;

/// Bytes before a frame's entries.
pub const FRAME_HEADER_BYTES: usize = 24;

/// Bytes before an entry's own.
pub const ENTRY_HEADER_BYTES: usize = 8;

const OFFSET_BITS: u32 = 48;

/// The most that the length of an entry can say, in whole words.
pub(crate) const ENTRY_BYTES_MAX: usize = u16::MAX as usize & !7;

/// Which frame: its number, and that of the segment it was written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameNumber {
    pub(crate) sequence: u64,
    pub(crate) ordinal: u64,
}

/// Fills in the header of `frame`, whose first [`FRAME_HEADER_BYTES`] are free for it.
pub(crate) fn seal_frame(frame: &mut [u8], number: FrameNumber) {
    let entry_bytes = (frame.len() - FRAME_HEADER_BYTES) as u32;
    frame[4..8].copy_from_slice(&entry_bytes.to_le_bytes());
    frame[8..16].copy_from_slice(&number.sequence.to_le_bytes());
    frame[16..24].copy_from_slice(&number.ordinal.to_le_bytes());
    let checksum = checksum(frame);
    frame[..4].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(frame: &[u8]) -> u32 {
    Checksum::default().update(&frame[4..]).value()
}

/// What a reader of frames demands of them. Broken twins demand less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demands {
    pub(crate) number: bool,
    pub(crate) checksum: bool,
}

impl Demands {
    /// What is demanded of the frames in `log`.
    pub(crate) fn on<F: File>(log: &F) -> Demands {
        Demands { number: !log.breaks(Canary::OldRecordsReplayed), checksum: !log.breaks(Canary::TornRecordAccepted) }
    }
}

/// The frame at the start of `bytes`, header included, if it is whole and has this number.
pub(crate) fn frame_at(bytes: &[u8], number: FrameNumber, demands: Demands) -> Option<&[u8]> {
    let entry_bytes = u32_at(bytes, 4)? as usize;
    let frame = bytes.get(..FRAME_HEADER_BYTES.checked_add(entry_bytes)?)?;
    let found = FrameNumber { sequence: u64_at(frame, 8)?, ordinal: u64_at(frame, 16)? };
    let is_number = found == number || !demands.number;
    let is_whole = u32_at(frame, 0)? == checksum(frame) || !demands.checksum;
    (entry_bytes > 0 && is_number && is_whole).then_some(frame)
}

/// Appends the head of an entry of `len_bytes` at `at`.
pub(crate) fn push_entry_head(into: &mut Vec<u8>, at: Offset, len_bytes: usize) {
    debug_assert!(at.0 >> OFFSET_BITS == 0 && len_bytes <= ENTRY_BYTES_MAX);
    into.extend((at.0 | (len_bytes as u64) << OFFSET_BITS).to_le_bytes());
}

/// Zeros up to a whole word.
pub(crate) fn pad(into: &mut Vec<u8>) {
    into.resize(into.len().next_multiple_of(8), 0);
}

/// The entries of a frame, as offsets and bytes; `None` in place of one that does not fit.
pub(crate) fn entries(frame: &[u8]) -> impl Iterator<Item = Option<(u64, &[u8])>> {
    let mut rest = &frame[FRAME_HEADER_BYTES..];
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

    const ALL: Demands = Demands { number: true, checksum: true };
    const NUMBER: FrameNumber = FrameNumber { sequence: 7, ordinal: 3 };

    fn frame() -> Vec<u8> {
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        for (at, bytes) in [(5, &b"abc"[..]), (64, b"12345678"), (1 << 40, b"")] {
            push_entry_head(&mut frame, Offset(at), bytes.len());
            frame.extend(bytes);
            pad(&mut frame);
        }
        seal_frame(&mut frame, NUMBER);
        frame
    }

    #[test]
    fn entries_come_back_in_their_order() {
        let mut bytes = frame();
        let len = bytes.len();
        bytes.extend([9; 40]);
        let found = frame_at(&bytes, NUMBER, ALL).unwrap();
        assert_eq!(found.len(), len);
        let read: Vec<_> = entries(found).map(Option::unwrap).collect();
        assert_eq!(read, [(5, &b"abc"[..]), (64, b"12345678"), (1 << 40, b"")]);
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_noticed() {
        let sound = frame();
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(frame_at(&bytes, NUMBER, ALL), None, "bit {bit}");
        }
        for len in 0..sound.len() {
            assert_eq!(frame_at(&sound[..len], NUMBER, ALL), None, "cut to {len}");
        }
    }

    #[test]
    fn a_frame_of_another_number_is_none() {
        for number in [FrameNumber { sequence: 8, ..NUMBER }, FrameNumber { ordinal: 2, ..NUMBER }] {
            assert_eq!(frame_at(&frame(), number, ALL), None);
        }
        assert_eq!(frame_at(&[0; 64], FrameNumber { sequence: 0, ordinal: 0 }, ALL), None);
    }
}
