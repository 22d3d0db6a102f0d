//! The frames of a segment, and whether all are there that were durable.
//!
//! What was not synced reaches a disk in any order: so a frame that is not whole may be followed by whole ones, in its segment or
//! in a later one, and be the end of the log all the same. But each frame, and each header, says up to where its writer had made
//! all frames durable: its mark. A frame that is not whole and lies before any mark is *damaged*. One that does not is the end.
//!
//! What cannot be told: damage to the last frames, those at or behind the last mark. With every frame waited for that is one
//! frame, or as many as were on their way at once.
//!
//! Frames behind one that is not whole are looked for at every word, since its length may be wrong, too. What looks like a frame
//! there has the segment's tag, whose salt no client knows: no value passes for a frame.

use crate::frame::{Demands, Frame, Frames};
use crate::layout::FRAMES_START_BYTES;
use crate::segment::Header;

/// Frames begin at multiples of it.
const ALIGNMENT_BYTES: usize = 8;

/// A frame, and where in the segment it begins.
pub(crate) type Placed<'a> = (usize, Frame<'a>);

/// See the module.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// Up to the first that is missing.
    pub(crate) frames: Vec<Placed<'a>>,
    /// Whole ones that follow.
    pub(crate) behind: Vec<Placed<'a>>,
    /// Where the first one ends that is missing, or all end.
    pub(crate) end_bytes: usize,
    /// The number of the first that is missing.
    pub(crate) next: u64,
    /// The number before which all were durable, as far as the segment knows.
    pub(crate) mark: u64,
}

impl<'a> Scan<'a> {
    /// Of `segment`, from the number `first` on, before the number `past` if that is known to be another segment's.
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

/// The whole frames with this number and greater ones, from `at` on.
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

    /// A segment of frames from number 10 on, which have these marks; and where they begin.
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

    /// How many frames there are, how many behind what is missing, and whether that was durable.
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
    fn frames_of_another_tag_or_number_are_not_looked_at() {
        let (mut segment, starts) = segment(&[10, 11, 12]);
        let (old, at) = (segment[starts[0]..starts[1]].to_vec(), starts[2] + 4096);
        segment[at..at + old.len()].copy_from_slice(&old);
        let mut foreign = vec![5; FRAME_HEADER_BYTES + 8];
        seal_frame(&mut foreign, Seal { sequence: 14, tag: HEADER.ordinal, mark: 14 });
        segment[at + 1024..][..foreign.len()].copy_from_slice(&foreign);
        assert_eq!(summary(&segment, None), (3, 0, false));
    }
}
