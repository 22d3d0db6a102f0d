//! The log's end, in complete pages: the next bytes to write, and the earlier bytes of the same page.
//!
//! A disk writes complete blocks. To add to a page that begins with earlier frames, either the operating system's
//! cache must have that page, or the writer must have its first bytes: they are here. So a frame can be written
//! past the cache, in pages that begin before and end behind it. A page that is written for the first time is
//! written to its end; otherwise the system would read the page from the disk first. The bytes behind the last
//! frame are then zero, which is not a frame.

use std::ops::Range;

use crate::pages::{PAGE_BYTES, Pages};

/// The page at which the log ends.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The bytes from the start of the page in which the log ends; zero behind `len_bytes`.
    pages: Pages,
    /// Number of these bytes that the log has.
    len_bytes: usize,
}

/// The part of the pages to write after an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The appended bytes; up to the end of a page that they begin.
    Cached,
    /// Complete pages, past the cache.
    Through,
}

impl Tail {
    /// Continues the log at the start of a page.
    pub(crate) fn restart(&mut self) {
        self.pages.clear();
        self.len_bytes = 0;
    }

    /// Appends `frame`. Returns the bytes to write, and the number of those bytes before the frame.
    pub(crate) fn append(&mut self, frame: &[u8], extent: Extent) -> (&[u8], usize) {
        let (start, end) = (self.len_bytes, self.len_bytes + frame.len());
        self.pages.resize(end);
        self.pages.bytes_mut()[start..end].copy_from_slice(frame);
        self.len_bytes = end;
        let written = extent.around(start..end);
        (&self.pages.bytes()[written.clone()], start - written.start)
    }

    /// Notes that the appended bytes are written: complete pages are not needed any more.
    pub(crate) fn settle(&mut self) {
        let whole_pages = self.len_bytes / PAGE_BYTES;
        self.pages.drop_first(whole_pages);
        self.len_bytes %= PAGE_BYTES;
    }
}

#[cfg(test)]
impl Tail {
    /// Returns the number of bytes kept in memory.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.pages.bytes().len()
    }
}

impl Extent {
    fn around(self, added: Range<usize>) -> Range<usize> {
        match self {
            Extent::Through => added.start / PAGE_BYTES * PAGE_BYTES..added.end.next_multiple_of(PAGE_BYTES),
            Extent::Cached if added.end.div_ceil(PAGE_BYTES) > added.start.div_ceil(PAGE_BYTES) => {
                added.start..added.end.next_multiple_of(PAGE_BYTES)
            }
            Extent::Cached => added,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes frames of these lengths to a log of garbage, page by page as `extent` says; returns the log's
    /// content.
    fn written(lens_bytes: &[usize], extent: Extent) -> Vec<u8> {
        let (mut tail, mut log, mut at) = (Tail::default(), vec![0xee; 8 * PAGE_BYTES], 0);
        for (i, &len_bytes) in lens_bytes.iter().enumerate() {
            let (bytes, before_bytes) = tail.append(&vec![i as u8 + 1; len_bytes], extent);
            log[at - before_bytes..][..bytes.len()].copy_from_slice(bytes);
            tail.settle();
            at += len_bytes;
        }
        log
    }

    #[test]
    fn frames_are_contiguous_and_end_in_zeros() {
        let lens_bytes = [40, 500, 1, 4096, 3000, 9000, 455];
        let end: usize = lens_bytes.iter().sum();
        for extent in [Extent::Cached, Extent::Through] {
            let log = written(&lens_bytes, extent);
            let frames = lens_bytes.iter().enumerate().flat_map(|(i, &len_bytes)| vec![i as u8 + 1; len_bytes]);
            assert_eq!(log[..end], frames.collect::<Vec<u8>>());
            let padded = end.next_multiple_of(PAGE_BYTES);
            assert!(log[end..padded].iter().all(|byte| *byte == 0), "{extent:?}");
            assert!(log[padded..].iter().all(|byte| *byte == 0xee), "{extent:?}");
        }
    }

    #[test]
    fn tail_cache_gets_whole_pages() {
        assert_eq!(Extent::Cached.around(0..40), 0..4096);
        assert_eq!(Extent::Cached.around(40..4096), 40..4096);
        assert_eq!(Extent::Cached.around(40..4097), 40..8192);
        assert_eq!(Extent::Through.around(40..513), 0..4096);
    }
}
