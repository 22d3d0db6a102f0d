//! Lines of words, all zero at first.
//!
//! The table's are lent by the host in one piece, aligned so that it may come in huge pages: a search goes to two lines that have nothing
//! to do with those of the search before.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;
use word::Word;

/// Words of a line.
pub(super) const LINE_WORDS: usize = 8;
const LINE_BYTES: usize = LINE_WORDS * size_of::<u64>();
/// A host may lend memory of this length and alignment in huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A line of the host's cache.
#[repr(C)]
pub(super) struct Line<W>(pub(super) [W; LINE_WORDS]);

/// Words of which a search takes many at once.
pub trait Wide: Word {
    /// Loads each, in no given order, as many pairs as both have.
    #[inline(always)]
    fn take_pairs(from: &[[Self; 2]], into: &mut [[MaybeUninit<u64>; 2]]) {
        for (from, into) in from.as_flattened().iter().zip(into.as_flattened_mut()) {
            into.write(from.load(Relaxed));
        }
    }
}

impl Wide for AtomicU64 {
    #[inline(always)]
    fn take_pairs(from: &[[AtomicU64; 2]], into: &mut [[MaybeUninit<u64>; 2]]) {
        pmem::arch::take_pairs(from, into);
    }
}

/// Many of them.
pub(super) struct Lines<W> {
    first: NonNull<W>,
    count: usize,
    _memory: Memory<W>,
}

/// Whose memory it is.
#[expect(dead_code, reason = "held for their ends alone")]
enum Memory<W> {
    DramWords(DramWords),
    Own(Own<W>),
}

/// A box of words. Others point into it, which a box forbids.
struct Own<W>(NonNull<[W]>);

impl<W> Drop for Own<W> {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and its only user is dropped.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Memory that goes back to its lender.
struct DramWords {
    memory: NonNull<u8>,
    layout: Layout,
    dram: Arc<dyn Dram>,
}

// SAFETY: the words are reached by shared references alone, as those of a slice that is shared; the memory is this value's.
unsafe impl<W: Send + Sync> Send for Lines<W> {}

// SAFETY: as above.
unsafe impl<W: Send + Sync> Sync for Lines<W> {}

impl Drop for DramWords {
    fn drop(&mut self) {
        // SAFETY: it was lent with this layout, and its only user is dropped.
        unsafe { self.dram.deallocate(self.memory, self.layout) }
    }
}

impl Lines<AtomicU64> {
    /// Memory of the host's; `None` if it has not so much. There is one line at least.
    pub(super) fn lent(count: usize, dram: &Arc<dyn Dram>) -> Option<Lines<AtomicU64>> {
        let count = count.max(1);
        let bytes = count.checked_mul(LINE_BYTES)?;
        let align = if bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { LINE_BYTES };
        let layout = Layout::from_size_align(bytes, align).ok()?;
        let lent = DramWords { memory: dram.allocate(layout)?, layout, dram: Arc::clone(dram) };
        Some(Lines { first: lent.memory.cast(), count, _memory: Memory::DramWords(lent) })
    }
}

impl<W: Word> Lines<W> {
    /// Some of the program's memory, for few lines, and for words that are no memory's.
    pub(super) fn own(count: usize) -> Lines<W> {
        let words: Box<[W]> = (0..(count + 1) * LINE_WORDS).map(|_| W::new(0)).collect();
        let words = NonNull::from(Box::leak(words));
        let first = words.cast::<W>();
        let start = first.as_ptr().align_offset(LINE_BYTES).min(LINE_WORDS);
        // SAFETY: there is a line's words more than are used.
        Lines { first: unsafe { first.add(start) }, count, _memory: Memory::Own(Own(words)) }
    }

    #[inline(always)]
    fn words(&self) -> &[W] {
        // SAFETY: there are so many words from the first on, lent or own, zero or more since, and they stay while this lives.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count * LINE_WORDS) }
    }

    /// Word `i` of them all.
    #[inline(always)]
    pub(super) fn word(&self, i: usize) -> &W {
        &self.words()[i]
    }

    /// Asks the cache for the line of word `i`, which may be none.
    #[inline(always)]
    pub(super) fn prefetch(&self, i: usize) {
        pmem::arch::prefetch(self.first.as_ptr().wrapping_add(i).cast());
    }

    /// The words from `i` on; `None` if there are none.
    #[inline(always)]
    pub(super) fn behind(&self, i: usize) -> Option<&[W]> {
        self.words().get(i..)
    }
}

impl<W> Deref for Lines<W> {
    type Target = [Line<W>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W>] {
        // SAFETY: a line is so many words, one after the other, and there are so many of them.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr().cast(), self.count) }
    }
}
