//! The replayed log in memory: the entries that each block of the base lacks.
//!
//! A block's entries are applied in the log's order, once the block's bytes were read from the base. Until then
//! they stay here. No page of an absent block is written to the base: a checkpoint copies pages from memory, and
//! loads them first.

use std::ops::Range;

use crate::dirty::DirtyPages;
use crate::error::JournalError;
use crate::frame::{ENTRY_HEADER_BYTES, entries};

/// An entry: the offset of its bytes, and their position in the segments.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: u64,
    segment: u32,
    start: u32,
    len: u32,
}

impl Change {
    /// Cuts off the part behind the first block that the bytes touch, up to the end of the last block: repeated calls
    /// return all these parts, the last one first. Returns `None` if the bytes are in one block.
    fn split_last(&mut self, block_bytes: u64) -> Option<Change> {
        let last_start = (self.at + u64::from(self.len) - 1) / block_bytes * block_bytes;
        let len = last_start.checked_sub(self.at).filter(|&len| len > 0)? as u32;
        let behind = Change { at: last_start, start: self.start + len, len: self.len - len, ..*self };
        self.len = len;
        Some(behind)
    }
}

/// Entries as they are read from the log.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    segments: Vec<Vec<u8>>,
    /// Number of segments whose frames were added so far.
    segment_count: u32,
    changes: Vec<Change>,
    /// The largest length of the region in any entry.
    pub(crate) region_bytes: u64,
    /// The end of the last bytes of any entry.
    pub(crate) end: u64,
}

impl Replayed {
    /// Adds the entries in `framed`, which begin at `start` of the present segment; returns false if one does not
    /// fit.
    pub(crate) fn add(&mut self, framed: &[u8], mut start: usize) -> bool {
        for entry in entries(framed) {
            let Some((at, bytes)) = entry else { return false };
            start += ENTRY_HEADER_BYTES;
            if bytes.is_empty() {
                self.region_bytes = self.region_bytes.max(at);
            } else {
                let change = Change { at, segment: self.segment_count, start: start as u32, len: bytes.len() as u32 };
                self.changes.push(change);
                self.end = self.end.max(at.saturating_add(bytes.len() as u64));
            }
            start += bytes.len().next_multiple_of(8);
        }
        true
    }

    /// Ends the present segment: later entries are in the next one.
    pub(crate) fn end_segment(&mut self) {
        self.segment_count += 1;
    }

    /// Keeps the bytes of the first ended segment that is not kept yet.
    pub(crate) fn keep(&mut self, segment: Vec<u8>) {
        self.segments.push(segment);
    }
}

/// Entries by block.
#[derive(Debug, Default)]
pub(crate) struct Redo {
    segments: Vec<Vec<u8>>,
    /// The entries, each within one block: sorted by block, and in the order of the log for each.
    changes: Vec<Change>,
    block_bytes: u64,
}

impl Redo {
    /// Groups the entries by block, in the memory that they already use.
    ///
    /// # Errors
    /// [`JournalError::Truncated`] if the entries reach beyond `base_bytes`.
    pub(crate) fn of(replayed: Replayed, block_bytes: u64, base_bytes: u64) -> Result<Redo, JournalError> {
        let Replayed { segments, mut changes, end, .. } = replayed;
        if end > base_bytes {
            return Err(JournalError::Truncated { base_bytes, region_bytes: end });
        }
        for i in 0..changes.len() {
            while let Some(behind) = changes[i].split_last(block_bytes) {
                changes.push(behind);
            }
        }
        // Entries have different positions in the log, so no order is lost.
        let block_bits = block_bytes.trailing_zeros();
        changes.sort_unstable_by_key(|change| (change.at >> block_bits, change.segment, change.start));
        Ok(Redo { segments, changes, block_bytes })
    }

    /// Returns the pages that entries touch.
    pub(crate) fn pages(&self) -> DirtyPages {
        let mut pages = DirtyPages::default();
        self.changes.iter().for_each(|change| pages.mark(change.at, change.len.into()));
        pages
    }

    /// Returns the entries of the block at `at`.
    fn changes_at(&self, at: u64) -> &[Change] {
        let block_bytes = self.block_bytes.max(1);
        let start = at - at % block_bytes;
        let from = &self.changes[self.changes.partition_point(|change| change.at < start)..];
        &from[..from.partition_point(|change| change.at < start + block_bytes)]
    }

    /// Returns true if entries touch the block at `at`.
    pub(crate) fn touches(&self, at: u64) -> bool {
        !self.changes_at(at).is_empty()
    }

    /// Returns the memory that the entries use.
    pub(crate) fn len_bytes(&self) -> u64 {
        let segment_bytes: usize = self.segments.iter().map(Vec::len).sum();
        (segment_bytes + self.changes.capacity() * size_of::<Change>()) as u64
    }

    /// Applies the entries that touch `bytes`, which are at `at`, all in one block.
    pub(crate) fn apply(&self, at: u64, bytes: &mut [u8]) {
        for change in self.changes_at(at) {
            let common = common(change.at..change.at + u64::from(change.len), at..at + bytes.len() as u64);
            if let Some(common) = common {
                let stored = &self.segments[change.segment as usize][change.start as usize..][..change.len as usize];
                bytes[part(&common, at)].copy_from_slice(&stored[part(&common, change.at)]);
            }
        }
    }
}

fn common(one: Range<u64>, other: Range<u64>) -> Option<Range<u64>> {
    let common = one.start.max(other.start)..one.end.min(other.end);
    (!common.is_empty()).then_some(common)
}

/// Returns the indices of `range` in a slice that begins at `start`.
fn part(range: &Range<u64>, start: u64) -> Range<usize> {
    (range.start - start) as usize..(range.end - start) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{pad, push_entry_head};
    use pmem::Offset;

    #[test]
    fn redo_applies_entry_parts_in_order() {
        let mut replayed = Replayed::default();
        let mut expected = [0; 64];
        for (number, list) in
            [vec![(3, 8), (14, 5), (60, 4)], vec![(0, 40), (15, 1)], vec![(30, 20)]].iter().enumerate()
        {
            let mut frame = Vec::new();
            for &(at, len) in list {
                let bytes: Vec<u8> = (0..len).map(|i| (1 + number * 80 + at + i) as u8).collect();
                push_entry_head(&mut frame, Offset(at as u64), len);
                frame.extend(&bytes);
                pad(&mut frame);
                expected[at..at + len].copy_from_slice(&bytes);
            }
            assert!(replayed.add(&frame, 7));
            replayed.end_segment();
            replayed.keep([vec![0xff; 7], frame].concat());
        }
        let redo = Redo::of(replayed, 16, 64).unwrap();
        let mut found = [0; 64];
        for (i, block) in found.chunks_mut(16).enumerate() {
            redo.apply(i as u64 * 16, block);
        }
        assert_eq!(found, expected);
        let mut word = [0; 8];
        redo.apply(40, &mut word);
        assert_eq!(word, expected[40..48]);
    }

    #[test]
    fn an_entry_behind_the_base_is_refused() {
        let mut frame = Vec::new();
        push_entry_head(&mut frame, Offset(60), 8);
        frame.extend([1; 8]);
        let mut replayed = Replayed::default();
        assert!(replayed.add(&frame, 0));
        let error = Redo::of(replayed, 16, 64).unwrap_err();
        assert!(matches!(error, JournalError::Truncated { base_bytes: 64, region_bytes: 68 }), "{error}");
    }
}
