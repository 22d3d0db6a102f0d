//! Scans the frames of a segment, and decides whether a missing frame was durable.
//!
//! Unsynced data reaches a disk in any order. So a frame that is not intact may be followed by intact ones, in its
//! segment or a later one, and still be the end of the log. But each frame, and each header, has a mark: the number
//! up to which its writer had made all frames durable. A frame that is not intact and is before any mark is
//! *damaged*. Otherwise it is the end.
//!
//! Damage to the last frames, at or behind the last mark, cannot be detected. If every frame is waited for, that is
//! one frame, or as many as were on their way at the same time.
//!
//! Frames behind a frame that is not intact are searched at every word, because its length may be wrong as well. A
//! frame found there has the segment's tag, whose salt no client knows: so no value can look like a frame.

use crate::frame::{Demands, Frame, Frames};
use crate::layout::FRAMES_START_BYTES;
use crate::segment::Header;

/// Frames begin at multiples of this.
const ALIGNMENT_BYTES: usize = 8;

/// A frame, and its start in the segment.
pub(crate) type Placed<'a> = (usize, Frame<'a>);

/// The result of scanning a segment.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// The frames up to the first missing one.
    pub(crate) frames: Vec<Placed<'a>>,
    /// Intact frames behind it.
    pub(crate) behind: Vec<Placed<'a>>,
    /// The position of the first missing frame, or of the end of all frames.
    pub(crate) end_bytes: usize,
    /// The number of the first missing frame.
    pub(crate) next: u64,
    /// The number before which all frames were durable, according to this segment.
    pub(crate) mark: u64,
}

impl<'a> Scan<'a> {
    /// Scans `segment` from the number `first` on, and before `past` if another segment is known to begin with that
    /// number.
    pub(crate) fn of(segment: &'a [u8], header: &Header, first: u64, past: Option<u64>, demands: Demands) -> Scan<'a> {
        let reader = Frames::of(header, demands);
        let (mut frames, mut at, mut next) = (Vec::new(), FRAMES_START_BYTES as usize, first);
        while past != Some(next)
            && let Some(frame) = segment.get(at..).and_then(|bytes| reader.numbered(bytes, next))
        {
            frames.push((at, frame));
            (at, next) = (at + frame.len_bytes, next + 1);
        }
        let mut behind = if past == Some(next) { Vec::new() } else { behind(segment, &reader, at, next + 1) };
        behind.retain(|(_, frame)| past.is_none_or(|past| frame.sequence < past));
        let marks = frames.iter().chain(&behind).map(|(_, frame)| frame.mark).chain([header.mark]);
        let mark = if demands.marks { marks.max().unwrap_or(0) } else { 0 };
        Scan { frames, behind, end_bytes: at, next, mark }
    }
}

/// Returns the intact frames from `at` on with the number `next` or greater ones.
fn behind<'a>(segment: &'a [u8], reader: &Frames, mut at: usize, mut next: u64) -> Vec<Placed<'a>> {
    let mut found = Vec::new();
    while let Some(bytes) = segment.get(at..).filter(|bytes| !bytes.is_empty()) {
        match reader.numbered_from(bytes, next) {
            Some(frame) => {
                found.push((at, frame));
                (at, next) = (at + frame.len_bytes, frame.sequence + 1);
            }
            None => at += ALIGNMENT_BYTES,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FRAME_HEADER_BYTES, Seal, seal_frame};

    const ALL: Demands = Demands { number: true, checksum: true, marks: true };
    const HEADER: Header = Header {
        version: crate::segment::VERSION,
        segment_bytes: 1 << 14,
        identity: [1; 16],
        ordinal: 3,
        mark: 10,
        is_first: true,
        oldest: 3,
        start: 10,
        region_bytes: 0,
        salt: 77,
    };

    /// Returns a segment of frames from number 10 on, with these marks; and the frames' positions.
    fn segment(marks: &[u64]) -> (Vec<u8>, Vec<usize>) {
        let (mut segment, mut starts) = (vec![0; FRAMES_START_BYTES as usize], Vec::new());
        for (sequence, &mark) in (10..).zip(marks) {
            let mut frame = vec![5; FRAME_HEADER_BYTES + 8 * (sequence as usize - 8)];
            seal_frame(&mut frame, Seal { sequence, tag: HEADER.tag(), mark });
            starts.push(segment.len());
            segment.extend(frame);
        }
        segment.resize(1 << 14, 0);
        (segment, starts)
    }

    /// Returns the number of frames, the number behind a missing frame, and whether the missing one was durable.
    fn summary(segment: &[u8], past: Option<u64>) -> (usize, usize, bool) {
        let scan = Scan::of(segment, &HEADER, 10, past, ALL);
        assert_eq!(scan.next, 10 + scan.frames.len() as u64);
        (scan.frames.len(), scan.behind.len(), past.unwrap_or(scan.mark) > scan.next)
    }

    #[test]
    fn frame_before_mark_is_damaged() {
        let (whole, starts) = segment(&[10, 11, 11, 12, 14]);
        assert_eq!(summary(&whole, None), (5, 0, false));
        for (i, damaged) in [true, true, true, true, false].into_iter().enumerate() {
            let mut segment = whole.clone();
            segment[starts[i] + 4] ^= 1;
            assert_eq!(summary(&segment, None), (i, 4 - i, damaged), "frame {i}");
            assert_eq!(summary(&segment, Some(15)), (i, 4 - i, true), "frame {i}, and a successor");
        }
        let (mut unsynced, starts) = segment(&[10, 10, 10]);
        unsynced[starts[1] + 50] ^= 1;
        assert_eq!(summary(&unsynced, None), (1, 1, false));
        assert_eq!(summary(&unsynced, Some(12)), (1, 0, true), "the successor begins with the last one's number");
        assert_eq!(summary(&unsynced, Some(11)), (1, 0, false), "it begins where the log was cut off");
    }

    #[test]
    fn frames_of_other_tags_are_ignored() {
        let (mut segment, starts) = segment(&[10, 11, 12]);
        let (old, at) = (segment[starts[0]..starts[1]].to_vec(), starts[2] + 4096);
        segment[at..at + old.len()].copy_from_slice(&old);
        let mut foreign = vec![5; FRAME_HEADER_BYTES + 8];
        seal_frame(&mut foreign, Seal { sequence: 14, tag: HEADER.ordinal, mark: 14 });
        segment[at + 1024..][..foreign.len()].copy_from_slice(&foreign);
        assert_eq!(summary(&segment, None), (3, 0, false));
    }
}
