//! Lines of words, all zero at first.
//!
//! Each starts where a line of the host's cache does: an allocation with that alignment would be written to the end before it is
//! used, while one of words is pages of zeros that the operating system gives at the first touch.

use std::alloc::{Layout, alloc_zeroed};
use std::ops::Deref;
use std::ptr::slice_from_raw_parts_mut;
use std::sync::atomic::AtomicU64;

use word::Word;

/// Words of a line.
pub(super) const LINE_WORDS: usize = 8;

/// A line of the host's cache.
#[repr(C)]
pub(super) struct Line<W>(pub(super) [W; LINE_WORDS]);

/// Many of them.
pub(super) struct Lines<W> {
    words: Box<[W]>,
    /// Where the first begins, in words.
    start: usize,
    count: usize,
}

impl Lines<AtomicU64> {
    /// Memory that the operating system gives when it is first touched; `None` if it has not so much. There is one line at least.
    pub(super) fn zeroed(count: usize) -> Option<Lines<AtomicU64>> {
        let word_count = (count.max(1) + 1) * LINE_WORDS;
        let layout = Layout::array::<AtomicU64>(word_count).ok()?;
        // SAFETY: the layout has a size.
        let words = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
        if words.is_null() {
            return None;
        }
        // SAFETY: it was allocated as so many words, which may be zero, and is nobody else's.
        let words = unsafe { Box::from_raw(slice_from_raw_parts_mut(words, word_count)) };
        let start = words.as_ptr().align_offset(LINE_WORDS * size_of::<AtomicU64>()).min(LINE_WORDS);
        Some(Lines { words, start, count })
    }
}

#[cfg(test)]
impl<W: Word> Lines<W> {
    /// As `zeroed`, of a model checker's words.
    pub(super) fn modelled(count: usize) -> Lines<W> {
        Lines { words: (0..count * LINE_WORDS).map(|_| W::new(0)).collect(), start: 0, count }
    }
}

impl<W> Deref for Lines<W> {
    type Target = [Line<W>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W>] {
        let words = &self.words[self.start..][..self.count * LINE_WORDS];
        // SAFETY: a line is so many words, one after the other.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), self.count) }
    }
}

impl<W: Word> Lines<W> {
    /// Word `i` of them all.
    #[inline(always)]
    pub(super) fn word(&self, i: usize) -> &W {
        &self.words[self.start + i]
    }

    /// How many words there are.
    #[inline(always)]
    pub(super) fn word_count(&self) -> usize {
        self.count * LINE_WORDS
    }
}
