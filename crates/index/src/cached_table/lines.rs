//! Lines of words, all zero at first.

use std::ops::Deref;
use std::sync::atomic::AtomicU64;

use word::Word;

/// Words of a line.
pub(super) const LINE_WORDS: usize = 8;

/// A line of the host's cache.
#[repr(C, align(64))]
pub(super) struct Line<W>(pub(super) [W; LINE_WORDS]);

/// Many of them.
pub(super) struct Lines<W>(Box<[Line<W>]>);

impl Lines<AtomicU64> {
    /// Memory that the operating system gives when it is first touched.
    pub(super) fn zeroed(count: usize) -> Lines<AtomicU64> {
        let lines = Box::<[Line<AtomicU64>]>::new_zeroed_slice(count);
        // SAFETY: an atomic word may be zero, and a line is such words.
        Lines(unsafe { lines.assume_init() })
    }
}

#[cfg(test)]
impl<W: Word> Lines<W> {
    /// As `zeroed`, of a model checker's words.
    pub(super) fn modelled(count: usize) -> Lines<W> {
        Lines((0..count).map(|_| Line(std::array::from_fn(|_| W::new(0)))).collect())
    }
}

impl<W> Deref for Lines<W> {
    type Target = [Line<W>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W>] {
        &self.0
    }
}

impl<W: Word> Lines<W> {
    /// Word `i` of them all.
    #[inline(always)]
    pub(super) fn word(&self, i: usize) -> &W {
        &self.0[i / LINE_WORDS].0[i % LINE_WORDS]
    }

    /// How many words there are.
    #[inline(always)]
    pub(super) fn word_count(&self) -> usize {
        self.0.len() * LINE_WORDS
    }
}
