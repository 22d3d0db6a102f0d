//! The surely durable bytes: sparse pages, shared copy-on-write between a medium and its images.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pmem::{LINE_BYTES, Offset};

/// The 8-byte units of a line, in memory order.
pub(crate) type Line = [u64; 8];

/// Small, so that an image copies little; equals the processor's page.
pub(crate) const PAGE_BYTES: u64 = 4096;

const PAGE_LINES: usize = (PAGE_BYTES / LINE_BYTES) as usize;
const ZERO_LINE: Line = [0; 8];

/// The lines of one page.
pub(crate) type Page = [Line; PAGE_LINES];

/// A region's bytes. Pages that were never set are zero.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    pages: Vec<Option<Arc<Page>>>,
    /// Exclusive or of every line's [`line_hash`].
    hash: u64,
}

impl Pages {
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn line(&self, at: Offset) -> Line {
        let (page, line) = place(at);
        self.pages.get(page).and_then(Option::as_ref).map_or(ZERO_LINE, |page| page[line])
    }

    pub(crate) fn set_line(&mut self, at: Offset, content: Line) {
        let before = self.line(at);
        if before == content {
            return;
        }
        self.hash ^= line_hash(at, &before) ^ line_hash(at, &content);
        let (page, line) = place(at);
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Arc::new([ZERO_LINE; PAGE_LINES]));
        Arc::make_mut(page)[line] = content;
    }

    /// Returns the page that starts at `at`, unless it is zero.
    pub(crate) fn page(&self, at: Offset) -> Option<&Page> {
        self.pages.get((at.0 / PAGE_BYTES) as usize)?.as_deref()
    }

    /// Returns the pages that may have content, each with its start.
    pub(crate) fn present(&self) -> impl Iterator<Item = (Offset, &Page)> {
        let starts = (0..).map(|page| Offset(page * PAGE_BYTES));
        starts.zip(&self.pages).filter_map(|(start, page)| Some((start, page.as_deref()?)))
    }
}

fn place(at: Offset) -> (usize, usize) {
    ((at.0 / PAGE_BYTES) as usize, (at.0 % PAGE_BYTES / LINE_BYTES) as usize)
}

/// Returns the hash of a line at its offset; 0 for zeros, so that absent pages and zero pages have the same hash.
pub(crate) fn line_hash(at: Offset, content: &Line) -> u64 {
    if *content == ZERO_LINE {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    (at.line().0, content).hash(&mut hasher);
    hasher.finish()
}

/// Returns `content`, the line at `line`, after `bytes` were put at `at`.
///
/// # Panics
/// If the bytes do not touch the line.
pub(crate) fn patched(content: Line, line: Offset, at: Offset, bytes: &[u8]) -> Line {
    let (start, end) = (at.0.max(line.0), (at.0 + bytes.len() as u64).min(line.0 + LINE_BYTES));
    let piece = &bytes[(start - at.0) as usize..(end - at.0) as usize];
    let mut content = content.map(u64::to_ne_bytes);
    content.as_flattened_mut()[(start - line.0) as usize..(end - line.0) as usize].copy_from_slice(piece);
    content.map(u64::from_ne_bytes)
}
