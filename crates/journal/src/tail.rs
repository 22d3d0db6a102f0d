//! The log's end, in whole pages: what is written next, and what of its page was written before.
//!
//! A disk takes whole blocks. To add to a page that begins with earlier frames, either the operating system's cache has that
//! page, or whoever writes has its first bytes: this is where they are. So a frame can be written past the cache, in pages
//! that begin before it and end behind it. And a page that is written for the first time is written to its end, or the
//! system would read from the disk what it is to add to. What lies behind the last frame is zero then, which is no frame.

use std::ops::Range;
use std::slice;

/// The unit of the operating system's cache.
pub(crate) const PAGE_BYTES: usize = 4096;

#[derive(Clone, Debug)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

const ZERO: Page = Page([0; PAGE_BYTES]);

/// Bytes in pages of memory, as writing past the cache wants them.
#[derive(Debug, Default)]
pub(crate) struct Pages(Vec<Page>);

impl Pages {
    /// As many zeros, in whole pages.
    pub(crate) fn zeros(len_bytes: usize) -> Pages {
        Pages(vec![ZERO; len_bytes.div_ceil(PAGE_BYTES)])
    }

    /// `bytes`, and zeros up to `len_bytes`, in whole pages.
    pub(crate) fn starting_with(bytes: &[u8], len_bytes: usize) -> Pages {
        let mut pages = Pages::zeros(len_bytes);
        pages.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        pages
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: pages are arrays of bytes without gaps, and borrowed for as long.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * PAGE_BYTES) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * PAGE_BYTES) }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// From the start of the page in which the log ends; zero behind `len_bytes`.
    pages: Pages,
    /// How much of it the log has.
    len_bytes: usize,
}

/// Which part of the pages is to be written for what was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// What was added; where it begins a page, to that page's end.
    Cached,
    /// Whole pages, those past the cache.
    Through,
}

impl Tail {
    /// The log goes on at the start of a page.
    pub(crate) fn restart(&mut self) {
        self.pages.0.clear();
        self.len_bytes = 0;
    }

    /// Appends `frame`. What is to be written, and how many bytes before the frame it begins.
    pub(crate) fn append(&mut self, frame: &[u8], extent: Extent) -> (&[u8], usize) {
        let (start, end) = (self.len_bytes, self.len_bytes + frame.len());
        self.pages.0.resize(end.div_ceil(PAGE_BYTES), ZERO);
        self.pages.bytes_mut()[start..end].copy_from_slice(frame);
        self.len_bytes = end;
        let written = extent.around(start..end);
        (&self.pages.bytes()[written.clone()], start - written.start)
    }

    /// What was appended is written: of whole pages nothing is needed any more.
    pub(crate) fn settle(&mut self) {
        let whole_pages = self.len_bytes / PAGE_BYTES;
        self.pages.0.drain(..whole_pages);
        self.len_bytes %= PAGE_BYTES;
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

    /// Writes frames of these lengths to a log of garbage, page by page as `extent` says, and gives what it holds.
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
    fn frames_follow_one_another_and_end_in_zeros() {
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
    fn the_cache_is_given_whole_pages_where_they_begin_and_else_what_is_new() {
        assert_eq!(Extent::Cached.around(0..40), 0..4096);
        assert_eq!(Extent::Cached.around(40..4096), 40..4096);
        assert_eq!(Extent::Cached.around(40..4097), 40..8192);
        assert_eq!(Extent::Through.around(40..513), 0..4096);
    }
}
