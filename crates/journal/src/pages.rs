//! Page-aligned bytes, as needed for writing past the operating system's cache.

use std::slice;

/// The unit of the operating system's cache.
pub(crate) const PAGE_BYTES: usize = 4096;

#[derive(Clone, Debug)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

const ZERO: Page = Page([0; PAGE_BYTES]);

/// Complete pages of bytes.
#[derive(Debug, Default)]
pub(crate) struct Pages(Vec<Page>);

impl Pages {
    /// Returns zeros of at least `len_bytes`, in complete pages.
    pub(crate) fn zeros(len_bytes: usize) -> Pages {
        Pages(vec![ZERO; len_bytes.div_ceil(PAGE_BYTES)])
    }

    /// Returns `bytes`, and zeros up to `len_bytes`, in complete pages.
    pub(crate) fn starting_with(bytes: &[u8], len_bytes: usize) -> Pages {
        let mut pages = Pages::zeros(len_bytes);
        pages.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        pages
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: pages are arrays of bytes without gaps, and borrowed for as long.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * PAGE_BYTES) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * PAGE_BYTES) }
    }

    /// Removes all pages; keeps their memory for reuse.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Sets the number of pages to hold `len_bytes`; new ones are zero.
    pub(crate) fn resize(&mut self, len_bytes: usize) {
        self.0.resize(len_bytes.div_ceil(PAGE_BYTES), ZERO);
    }

    /// Adds zeros, in complete pages, and returns them to be filled.
    pub(crate) fn lengthen(&mut self, len_bytes: usize) -> &mut [u8] {
        let start = self.bytes().len();
        self.resize(start + len_bytes);
        &mut self.bytes_mut()[start..]
    }

    pub(crate) fn drop_first(&mut self, page_count: usize) {
        self.0.drain(..page_count);
    }
}
