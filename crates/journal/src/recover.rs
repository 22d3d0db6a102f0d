//! From two files to a region: the base, and the log replayed over it.
//!
//! # Steps
//! 1. The headers of all slots are read. The newest says which is the oldest that counts; all from there on must be there.
//! 2. Their frames are applied to memory, in order. In all but the newest segment each frame must be there up to the number
//!    at which the next segment begins: they were durable before that had a header. In the newest the log ends at the first
//!    frame that is torn or of another number. A reader stops here.
//! 3. The newest segment's frames are written again, as they are, and synced. They may be in the cache of the operating
//!    system alone: of a process that was killed, or whose sync failed, which the kernel then takes for written. *Crash:*
//!    as before.
//! 4. The base's pages that the log has entries of are written again, as far as they are in that cache, and the base synced,
//!    for the same reason: a checkpoint that did not end may have left words there that were stored and not flushed, and are
//!    not in the log. Of a checkpoint that ended everything is durable; so what is not lies in these pages. *Crash:* as
//!    before; which of those words are there was open until now.
//! 5. A new segment begins behind the frames, so that what a torn end left is never taken for new.
//!
//! All segments up to the newest are sealed then, as if they had been written by this process; the checkpoint applies them.

use std::io;
use std::ops::Range;

use crate::error::{JournalError, Which};
use crate::frame::{Demands, FrameNumber, frame_at};
use crate::journal::FIRST_POSITION;
use crate::layout::FRAMES_START_BYTES;
use crate::redo::Replayed;
use crate::segment::{HEADER_BYTES, Header, NoHeader};
use crate::slots::{Sealed, Slots};
use crate::writer::Writer;
use crate::{File, JournalOptions};

/// The state of a log that was read or made.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) identity: [u8; 16],
    pub(crate) slots: Slots,
    pub(crate) writer: Writer,
}

/// The frames of a segment, header and all, that have these numbers, up to the first that is missing.
fn frames(segment: &[u8], ordinal: u64, sequences: Range<u64>, demands: Demands) -> impl Iterator<Item = &[u8]> {
    let mut at = FRAMES_START_BYTES as usize;
    sequences.map_while(move |sequence| {
        let frame = frame_at(segment.get(at..)?, FrameNumber { sequence, ordinal }, demands)?;
        at += frame.len();
        Some(frame)
    })
}

/// The segments that replay needs, oldest first.
struct Chain {
    slots: Slots,
    segments: Vec<(u64, Header)>,
}

impl Chain {
    /// Step 1.
    fn read<F: File>(log: &F, options: &JournalOptions) -> Result<Chain, JournalError> {
        let count = log.len().map_err(JournalError::io(Which::Log, "examine"))? / options.segment_bytes;
        let mut headers: Vec<(u64, Header)> = Vec::new();
        for slot in 0..count {
            headers.extend(read_header(log, slot, options)?.map(|header| (slot, header)));
        }
        headers.sort_unstable_by_key(|(_, header)| header.ordinal);
        let newest = headers.last().ok_or(JournalError::Unfinished)?.1;
        let (old, segments): (Vec<_>, Vec<_>) =
            headers.into_iter().partition(|(_, header)| header.ordinal < newest.oldest);
        drop(old);
        let is_whole = segments.iter().zip(newest.oldest..).all(|((_, header), ordinal)| header.ordinal == ordinal)
            && segments.len() as u64 == newest.ordinal - newest.oldest + 1;
        if !is_whole {
            return Err(JournalError::Damaged { at_bytes: 0, what: "a segment that replay needs has no header" });
        }
        let is_needed = |slot: &u64| segments.iter().any(|(needed, _)| needed == slot);
        let free = (0..count).rev().filter(|slot| !is_needed(slot)).collect();
        Ok(Chain { slots: Slots { count, free, ..Slots::default() }, segments })
    }
}

fn read_header<F: File>(log: &F, slot: u64, options: &JournalOptions) -> Result<Option<Header>, JournalError> {
    let at_bytes = slot * options.segment_bytes;
    let mut bytes = [0; HEADER_BYTES];
    log.read_at(&mut bytes, at_bytes).map_err(JournalError::io(Which::Log, "read"))?;
    match Header::decode(&bytes) {
        Ok(header) if u64::from(header.segment_bytes) == options.segment_bytes => Ok(Some(header)),
        Ok(_) => Err(JournalError::Damaged { at_bytes, what: "the segment has another length" }),
        Err(NoHeader::Version(found)) => Err(JournalError::Version { found }),
        Err(NoHeader::None) => Ok(None),
    }
}

/// Steps 1 and 2: the log's state, and its entries in order. `progress` is told of segments done, of how many.
pub(crate) fn replay<F: File>(
    log: &F,
    options: &JournalOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Log, Replayed), JournalError> {
    let Chain { mut slots, segments } = Chain::read(log, options)?;
    let mut replayed = Replayed::default();
    for (i, (slot, header)) in segments.iter().enumerate() {
        progress(i as u64, segments.len() as u64);
        let start_bytes = slot * options.segment_bytes;
        let mut bytes = vec![0; options.segment_bytes as usize];
        log.read_at(&mut bytes, start_bytes).map_err(JournalError::io(Which::Log, "read"))?;
        let past = segments.get(i + 1).map_or(u64::MAX, |(_, next)| next.first_sequence);
        let (mut sequence, mut end_bytes) = (header.first_sequence, FRAMES_START_BYTES);
        for frame in frames(&bytes, header.ordinal, header.first_sequence..past, Demands::on(log)) {
            if !replayed.add(frame, end_bytes) {
                let at_bytes = start_bytes + end_bytes;
                return Err(JournalError::Damaged { at_bytes, what: "an entry leaves its frame" });
            }
            sequence += 1;
            end_bytes += frame.len() as u64;
        }
        if past != u64::MAX && sequence != past {
            return Err(JournalError::Damaged {
                at_bytes: start_bytes + end_bytes,
                what: "a frame is missing that was durable",
            });
        }
        bytes.truncate(end_bytes as usize);
        replayed.keep(bytes);
        let sequences = header.first_sequence..sequence;
        let end = FIRST_POSITION;
        slots.sealed.push_back(Sealed { slot: *slot, ordinal: header.ordinal, sequences, end_bytes, end });
    }
    let newest = slots.sealed.back().expect("a chain has a segment");
    let region_bytes = segments[0].1.region_bytes.max(replayed.region_bytes);
    let writer = Writer { ordinal: newest.ordinal, sequence: newest.sequences.end, region_bytes, ..Writer::default() };
    let identity = segments[0].1.identity;
    Ok((Log { identity, slots, writer }, replayed))
}

/// Step 3.
pub(crate) fn rewrite_tail<F: File>(log: &F, newest: &Sealed, options: &JournalOptions) -> io::Result<()> {
    let start_bytes = newest.slot * options.segment_bytes;
    let mut bytes = vec![0; newest.end_bytes as usize];
    log.read_at(&mut bytes, start_bytes)?;
    log.write_at(&bytes, start_bytes)?;
    log.sync()
}
