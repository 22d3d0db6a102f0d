//! From the log's entries to the base's pages.
//!
//! A base's page is read, changed and written once for all the entries that touch it, wherever in the log they stand; pages
//! that follow one another are read and written together. The operating system is told beforehand of all that is to be read:
//! a disk is quick with many requests at once, and slow with one after the other.

use std::io;
use std::ops::Range;

use pmem::Canary;

use crate::File;
use crate::frame::entries;
use crate::journaled::PAGE_BYTES;
use crate::recover::Unreadable;

/// The most that is read and written in one call: large enough to make calls rare.
const RUN_BYTES_MAX: u64 = 1 << 20;

/// Pages that lie closer together are read in one request, with those between them: that costs a disk less than another.
const GAP_BYTES_MAX: u64 = 16 * PAGE_BYTES;

/// Entries, or parts of them, each within a page.
#[derive(Debug, Default)]
pub(crate) struct Changes<'a>(Vec<(u64, &'a [u8])>);

fn page(at: u64) -> u64 {
    at - at % PAGE_BYTES
}

impl<'a> Changes<'a> {
    /// The entries of a frame, which comes behind those that were added before.
    pub(crate) fn add(&mut self, frame: &'a [u8]) -> io::Result<()> {
        for entry in entries(frame) {
            let (mut at, mut bytes) = entry.ok_or_else(|| io::Error::other(Unreadable))?;
            while !bytes.is_empty() {
                let room_bytes = (page(at) + PAGE_BYTES - at) as usize;
                let (first, rest) = bytes.split_at(bytes.len().min(room_bytes));
                self.0.push((at, first));
                (at, bytes) = (at + first.len() as u64, rest);
            }
        }
        Ok(())
    }

    /// Writes everything to `base`. A broken twin has `live` fill in pages of memory, from an offset on, instead.
    pub(crate) fn write_to<F: File>(mut self, base: &F, live: impl Fn(u64, &mut [u8])) -> io::Result<()> {
        // Stable: of two entries for the same bytes the later one counts.
        self.0.sort_by_key(|(at, _)| page(*at));
        for (_, range) in self.runs(GAP_BYTES_MAX, u64::MAX) {
            base.will_read(range);
        }
        let mut pages = Vec::new();
        for (changes, range) in self.runs(0, RUN_BYTES_MAX) {
            pages.resize((range.end - range.start) as usize, 0);
            base.read_at(&mut pages, range.start)?;
            for (at, bytes) in changes {
                pages[(at - range.start) as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            if base.breaks(Canary::LivePageInBase) {
                live(range.start, &mut pages);
            }
            base.write_at(&pages, range.start)?;
        }
        Ok(())
    }

    /// The changes in groups, each with the pages that it spans: within a group no gap is longer than `gap_bytes_max`, and
    /// no group is longer than `run_bytes_max`.
    fn runs(&self, gap_bytes_max: u64, run_bytes_max: u64) -> impl Iterator<Item = (&[(u64, &'a [u8])], Range<u64>)> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let start = page(rest.first()?.0);
            let belongs = |before: u64, at: u64| {
                page(at) <= page(before) + PAGE_BYTES + gap_bytes_max && page(at) - start < run_bytes_max
            };
            let behind = rest.windows(2).position(|pair| !belongs(pair[0].0, pair[1].0));
            let (run, behind) = rest.split_at(behind.map_or(rest.len(), |last| last + 1));
            rest = behind;
            Some((run, start..page(run[run.len() - 1].0) + PAGE_BYTES))
        })
    }
}

#[cfg(test)]
mod tests {
    use pmem::Offset;

    use super::*;
    use crate::OsFile;
    use crate::frame::{FRAME_HEADER_BYTES, pad, push_entry_head};

    const FILE_BYTES: u64 = 40 * PAGE_BYTES;

    #[test]
    fn every_byte_is_the_last_that_was_stored_and_pages_without_any_stay() {
        let directory = tempfile::tempdir().unwrap();
        let base = OsFile::create(&directory.path().join("base")).unwrap();
        let mut expected = vec![0xee; FILE_BYTES as usize];
        base.write_at(&expected, 0).unwrap();
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        for (i, (at, len_bytes)) in
            [(70_000, 300), (8, 16), (69_900, 300), (4_090, 9_000), (130_000, 1), (12_000, 8)].into_iter().enumerate()
        {
            let bytes = vec![i as u8; len_bytes];
            push_entry_head(&mut frame, Offset(at), len_bytes);
            frame.extend(&bytes);
            pad(&mut frame);
            expected[at as usize..][..len_bytes].copy_from_slice(&bytes);
        }
        let mut changes = Changes::default();
        changes.add(&frame).unwrap();
        changes.write_to(&base, |_, _| ()).unwrap();
        let mut found = vec![0; FILE_BYTES as usize];
        base.read_at(&mut found, 0).unwrap();
        assert!(found == expected);
    }

    #[test]
    fn runs_end_at_gaps_and_at_their_limit() {
        let ats = [0, 4_095, 4_096, 5 * 4_096, 6 * 4_096, 7 * 4_096];
        let changes = Changes(ats.iter().map(|&at| (at, &[0_u8][..])).collect());
        let runs = |gap_bytes_max, run_bytes_max| -> Vec<_> {
            changes.runs(gap_bytes_max, run_bytes_max).map(|(run, range)| (run.len(), range)).collect()
        };
        assert_eq!(runs(0, 2 * 4_096), [(3, 0..8_192), (2, 20_480..28_672), (1, 28_672..32_768)]);
        assert_eq!(runs(3 * 4_096, u64::MAX), [(6, 0..32_768)]);
    }
}
