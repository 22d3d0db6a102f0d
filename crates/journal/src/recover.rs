//! Recovery: from two files to a region, by replaying the log over the base.
//!
//! # Steps
//! 1. The headers of all slots are read. The newest header records the oldest segment that counts; all segments
//!    from that one on must be present. A slot without a header that has frames of such a segment is damaged: a
//!    header is durable before the first frame.
//! 2. Their frames are applied to memory, in order, up to the first frame that is torn or missing. Each segment
//!    continues with the number at which the segment before ends. The first missing frame is the log's end, unless
//!    a mark says that it was durable (`scan`). If a header records the number at which its segment begins, all
//!    frames before that number must be present, and frames of older segments from that number on were not part of
//!    the log any more when the segment was begun. A reader stops here.
//! 3. The frames of segments that no mark calls durable, and the headers of segments without frames, are rewritten
//!    with the same content, and synced. They may be only in the operating system's cache: after a process was
//!    killed, or after a failed sync, because the kernel then treats the pages as written. *Crash:* as before.
//! 4. The base's pages that have entries in the log are rewritten, if they are in that cache, and the base is
//!    synced, for the same reason: an unfinished checkpoint may have left words there that were stored and not
//!    flushed, and are not in the log. Everything that a finished checkpoint wrote is durable, so only these pages
//!    may not be. *Crash:* as before; until now, each of those words could be present or absent.
//! 5. A new segment begins behind the frames, so that the rest of a torn end is never mistaken for new frames. It
//!    has the present version, also behind segments of older versions. *Crash:* the log is as before, or has one
//!    more, empty segment.
//!
//! Then all segments up to the newest are sealed, as if this process had written them; the checkpoint applies them.
//!
//! A damaged log is not opened (`docs/decisions/0025-mark-durable-frames-in-the-log.md`). For a salvage, all intact
//! frames are applied in their order, including those behind missing ones, and nothing is written.

use crate::durable::FIRST_POSITION;
use crate::error::{JournalError, Which};
use crate::frame::{Demands, any_frame};
use crate::layout::FRAMES_START_BYTES;
use crate::opened::OpenedLog;
use crate::redo::Replayed;
use crate::scan::{Placed, Scan};
use crate::segment::{HEADER_BYTES, Header, MARKS_VERSION, NoHeader, VERSION};
use crate::slots::{Sealed, Slots};
use crate::writer::Writer;
use crate::{File, JournalOptions};

/// The result of reading a log: the state, the entries in order, and the damage.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) log: OpenedLog,
    pub(crate) replayed: Replayed,
    /// The segments that may not be durable as they are.
    pub(crate) unproved: Vec<Sealed>,
    pub(crate) damage: Vec<JournalError>,
}

/// The segments that replay needs, oldest first.
#[derive(Default)]
struct Chain {
    slots: Slots,
    segments: Vec<(u64, Header)>,
    /// The number of the first frame.
    start: u64,
    damage: Vec<JournalError>,
}

impl Chain {
    /// Step 1.
    fn read<F: File>(source: &Source<'_, F>) -> Result<Chain, JournalError> {
        let Source { len_bytes, segment_bytes, .. } = *source;
        let (mut segments, mut without) = (Vec::new(), Vec::new());
        for slot in 0..len_bytes.div_ceil(segment_bytes) {
            match source.header(slot)? {
                Some(header) => segments.push((slot, header)),
                None => without.push(slot),
            }
        }
        let newest = segments.iter().map(|(_, header)| *header).max_by_key(|header| header.ordinal);
        let oldest = newest.map_or(0, |newest| newest.oldest);
        segments.retain(|(_, header)| header.ordinal >= oldest);
        let mut damage = Vec::new();
        for slot in without {
            let Some(header) = source.header_of_frames(slot, newest.as_ref())? else { continue };
            if header.ordinal >= oldest {
                let at_bytes = slot * segment_bytes;
                damage.push(JournalError::Damaged { at_bytes, what: "a segment with frames has no valid header" });
                segments.push((slot, header));
            }
        }
        segments.sort_unstable_by_key(|(_, header)| header.ordinal);
        let (Some((_, first)), Some((_, last))) = (segments.first(), segments.last()) else {
            return Ok(Chain { damage: vec![JournalError::Unfinished], ..Chain::default() });
        };
        let start = newest.as_ref().unwrap_or(first).start_at(first);
        let expected = if newest.is_some() { oldest..=last.ordinal } else { first.ordinal..=last.ordinal };
        if !expected.eq(segments.iter().map(|(_, header)| header.ordinal)) {
            damage.push(JournalError::Damaged { at_bytes: 0, what: "a segment that replay needs has no header" });
        }
        let count = len_bytes / segment_bytes;
        let is_needed = |slot: &u64| segments.iter().any(|(needed, _)| needed == slot);
        if !len_bytes.is_multiple_of(segment_bytes) && is_needed(&count) {
            damage.push(JournalError::Damaged { at_bytes: len_bytes, what: "the file ends within a segment" });
        }
        let is_spaced = |slot: u64| source.spaced_bytes(slot) >= source.capacity_bytes;
        let mut counted = (0..count).rev().skip_while(|slot| !is_needed(slot) && !is_spaced(*slot));
        let count = counted.next().map_or(0, |last| last + 1);
        let free = (0..count).filter(|slot| !is_needed(slot)).collect();
        Ok(Chain { slots: Slots { count, free, ..Slots::default() }, segments, start, damage })
    }
}

/// The log file, by segments. Bytes behind the file's end read as zero.
struct Source<'a, F> {
    log: &'a F,
    len_bytes: u64,
    segment_bytes: u64,
    /// The least space of a slot that was created completely.
    capacity_bytes: u64,
}

impl<F: File> Source<'_, F> {
    /// Returns the number of bytes of a slot that have space, in complete pages.
    fn spaced_bytes(&self, slot: u64) -> u64 {
        let (start, past) = (slot * self.segment_bytes, (slot + 1) * self.segment_bytes);
        let bytes = self.log.spaced_up_to(start, past) - start;
        bytes - bytes % FRAMES_START_BYTES
    }

    fn segment(&self, slot: u64) -> Result<Vec<u8>, JournalError> {
        let mut bytes = vec![0; self.segment_bytes as usize];
        self.read(&mut bytes, slot * self.segment_bytes)?;
        Ok(bytes)
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<(), JournalError> {
        let there_bytes = self.len_bytes.saturating_sub(at).min(into.len() as u64) as usize;
        self.log.read_at(&mut into[..there_bytes], at).map_err(JournalError::io(Which::Log, "read"))
    }

    fn header(&self, slot: u64) -> Result<Option<Header>, JournalError> {
        let at_bytes = slot * self.segment_bytes;
        let mut bytes = [0; HEADER_BYTES];
        self.read(&mut bytes, at_bytes)?;
        match Header::decode(&bytes) {
            Ok(header) if u64::from(header.segment_bytes) == self.segment_bytes => Ok(Some(header)),
            Ok(_) => Err(JournalError::Damaged { at_bytes, what: "the segment's length is not the journal's" }),
            Err(NoHeader::Version(found)) => Err(JournalError::Version { found }),
            Err(NoHeader::None) => Ok(None),
        }
    }

    /// Reconstructs the header of a segment whose first frame is intact.
    fn header_of_frames(&self, slot: u64, newest: Option<&Header>) -> Result<Option<Header>, JournalError> {
        let mut first = [0; HEADER_BYTES];
        self.read(&mut first, slot * self.segment_bytes + FRAMES_START_BYTES)?;
        if first == [0; HEADER_BYTES] {
            // A slot that was never used.
            return Ok(None);
        }
        let bytes = self.segment(slot)?;
        Ok(any_frame(&bytes[FRAMES_START_BYTES as usize..]).map(|(first, tag)| Header {
            version: VERSION,
            segment_bytes: self.segment_bytes as u32,
            identity: newest.map_or([0; 16], |newest| newest.identity),
            ordinal: tag & u64::from(u32::MAX),
            mark: 0,
            is_first: false,
            oldest: 0,
            start: first,
            region_bytes: 0,
            salt: (tag >> u32::BITS) as u32,
        }))
    }
}

/// Steps 1 and 2. Calls `progress` with the number of finished segments, and the total.
///
/// # Errors
/// If the log cannot be read, or has another program's version. Damage is not an error here, but part of the
/// result.
pub(crate) fn replay<F: File>(
    log: &F,
    options: &JournalOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Recovered, JournalError> {
    let len_bytes = log.len().map_err(JournalError::io(Which::Log, "examine"))?;
    let (segment_bytes, capacity_bytes) = (options.segment_bytes, options.first_space_bytes());
    let source = Source { log, len_bytes, segment_bytes, capacity_bytes };
    let Chain { mut slots, segments, start, damage } = Chain::read(&source)?;
    let mut replay = Replay { replayed: Replayed::default(), unproved: Vec::new(), damage, frame_count: 0 };
    let runs: Vec<_> = segments.chunk_by(|_, (_, later)| !later.is_first).collect();
    let (mut next, mut done) = (start, 0);
    for (i, run) in runs.iter().enumerate() {
        let read = |(slot, _): &(u64, Header)| {
            progress(done, segments.len() as u64);
            done += 1;
            source.segment(*slot)
        };
        let bytes = run.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let first = if run[0].1.is_first { run[0].1.mark } else { next };
        let run = Run { segments: run, bytes, first, past: runs.get(i + 1).map(|later| later[0].1.mark) };
        next = replay.add_run(run, &mut slots, options.segment_bytes, Demands::on(log));
    }
    let Replay { replayed, unproved, mut damage, frame_count } = replay;
    for error in &mut damage {
        if let JournalError::Gap { frames_behind, .. } = error {
            *frames_behind = frame_count - *frames_behind;
        }
    }
    let newest = slots.sealed.back();
    let region_bytes = segments.iter().map(|(_, header)| header.region_bytes).chain([replayed.region_bytes]).max();
    let writer = Writer {
        ordinal: newest.map_or(0, |newest| newest.ordinal),
        tag: segments
            .last()
            .filter(|(_, header)| header.version >= MARKS_VERSION)
            .map_or(0, |(_, header)| header.tag()),
        sequence: next,
        region_bytes: region_bytes.unwrap_or(0),
        ..Writer::default()
    };
    let identity = segments.first().map_or([0; 16], |(_, header)| header.identity);
    let capacity_bytes = (0..slots.count).map(|slot| source.spaced_bytes(slot)).min().unwrap_or(0);
    Ok(Recovered { log: OpenedLog { identity, slots, writer, capacity_bytes }, replayed, unproved, damage })
}

/// Consecutive segments, each of which continues with the number at which the one before ends.
struct Run<'a> {
    segments: &'a [(u64, Header)],
    bytes: Vec<Vec<u8>>,
    /// The number of the first frame.
    first: u64,
    /// The number at which the next run begins.
    past: Option<u64>,
}

impl Run<'_> {
    fn scans(&self, demands: Demands) -> Vec<Scan<'_>> {
        let mut next = self.first;
        let mut scans = Vec::new();
        for ((_, header), bytes) in self.segments.iter().zip(&self.bytes) {
            let scan = Scan::of(bytes, header, next, self.past, demands);
            next = scan.next;
            scans.push(scan);
        }
        scans
    }
}

struct Replay {
    replayed: Replayed,
    unproved: Vec<Sealed>,
    /// The damage found. Until the end, a gap has the number of frames before it in `frames_behind`.
    damage: Vec<JournalError>,
    frame_count: u64,
}

impl Replay {
    /// Adds the frames of a run, including those behind a missing frame that was durable. Returns the number of the
    /// first missing frame.
    fn add_run(&mut self, mut run: Run<'_>, slots: &mut Slots, segment_bytes: u64, demands: Demands) -> u64 {
        let scans = run.scans(demands);
        let next = scans.last().map_or(run.first, |scan| scan.next);
        let mark = scans.iter().map(|scan| scan.mark).chain(run.past).max().unwrap_or(0);
        let mut gap = (mark > next).then_some(next);
        let (mut first, mut kept_bytes) = (run.first, Vec::new());
        for (scan, &(slot, header)) in scans.iter().zip(run.segments) {
            let start_bytes = slot * segment_bytes;
            let mut end_bytes = self.add_frames(&scan.frames, start_bytes, scan.end_bytes);
            if let Some(sequence) = gap.take_if(|_| scan.next == next) {
                let at_bytes = start_bytes + scan.end_bytes as u64;
                self.damage.push(JournalError::Gap { at_bytes, sequence, frames_behind: self.frame_count });
            }
            if mark > next {
                end_bytes = self.add_frames(&scan.behind, start_bytes, end_bytes);
            }
            kept_bytes.push(end_bytes);
            self.replayed.end_segment();
            let (end_bytes, end) = (scan.end_bytes as u64, FIRST_POSITION);
            let sealed = Sealed { slot, ordinal: header.ordinal, first, end_bytes, end };
            if run.past.is_none() && (scan.next > mark || scan.frames.is_empty()) {
                self.unproved.push(sealed.clone());
            }
            slots.begun = (sealed.ordinal, sealed.first);
            slots.sealed.push_back(sealed);
            first = scan.next;
        }
        drop(scans);
        for (mut bytes, kept_bytes) in run.bytes.drain(..).zip(kept_bytes) {
            bytes.truncate(kept_bytes);
            bytes.shrink_to_fit();
            self.replayed.keep(bytes);
        }
        next
    }

    fn add_frames(&mut self, frames: &[Placed<'_>], start_bytes: u64, mut end_bytes: usize) -> usize {
        for &(at, frame) in frames {
            end_bytes = at + frame.len_bytes;
            if !self.replayed.add(frame.entries, end_bytes - frame.entries.len()) {
                let at_bytes = start_bytes + at as u64;
                self.damage.push(JournalError::Damaged { at_bytes, what: "an entry is longer than its frame" });
            }
        }
        self.frame_count += frames.len() as u64;
        end_bytes
    }
}
