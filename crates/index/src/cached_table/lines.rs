//! Lines of words, initially zero.
//!
//! The host allocates the table's lines in one piece, aligned so that it may consist of huge pages: a search reads
//! two lines that have no relation to those of the search before.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;
use word::Word;

/// The number of words in a line.
pub(super) const LINE_WORDS: usize = 8;
const LINE_BYTES: usize = LINE_WORDS * size_of::<u64>();
/// A host may allocate memory of this length and alignment in huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A cache line.
#[repr(C)]
pub(super) struct Line<W>(pub(super) [W; LINE_WORDS]);

/// Words of which a search copies many at once.
pub trait Wide: Word {
    /// Loads each word, in any order, for as many pairs as both slices have.
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

/// A sequence of lines.
pub(super) struct Lines<W> {
    first: NonNull<W>,
    count: usize,
    _memory: Memory<W>,
}

/// The owner of the memory.
#[expect(dead_code, reason = "held for their ends alone")]
enum Memory<W> {
    DramWords(DramWords),
    Own(Own<W>),
}

/// A box of words. It is not a `Box`, because other pointers refer to the words.
struct Own<W>(NonNull<[W]>);

impl<W> Drop for Own<W> {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and its only user is dropped.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Memory that is freed to its allocator.
struct DramWords {
    memory: NonNull<u8>,
    layout: Layout,
    dram: Arc<dyn Dram>,
}

// SAFETY: the words are reached only by shared references, as those of a shared slice; the memory belongs to this
// value.
unsafe impl<W: Send + Sync> Send for Lines<W> {}

// SAFETY: as above.
unsafe impl<W: Send + Sync> Sync for Lines<W> {}

impl Drop for DramWords {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and its only user is dropped.
        unsafe { self.dram.deallocate(self.memory, self.layout) }
    }
}

impl Lines<AtomicU64> {
    /// Allocates lines from the host, at least one. Returns `None` if the host does not have that much memory.
    pub(super) fn allocated(count: usize, dram: &Arc<dyn Dram>) -> Option<Lines<AtomicU64>> {
        let count = count.max(1);
        let bytes = count.checked_mul(LINE_BYTES)?;
        let align = if bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { LINE_BYTES };
        let layout = Layout::from_size_align(bytes, align).ok()?;
        let allocated = DramWords { memory: dram.allocate(layout)?, layout, dram: Arc::clone(dram) };
        Some(Lines { first: allocated.memory.cast(), count, _memory: Memory::DramWords(allocated) })
    }
}

impl<W: Word> Lines<W> {
    /// Allocates lines from the program's heap: for few lines, and for words of a model checker.
    pub(super) fn own(count: usize) -> Lines<W> {
        let words: Box<[W]> = (0..(count + 1) * LINE_WORDS).map(|_| W::new(0)).collect();
        let words = NonNull::from(Box::leak(words));
        let first = words.cast::<W>();
        let start = first.as_ptr().align_offset(LINE_BYTES).min(LINE_WORDS);
        // SAFETY: there is one line of words more than are used.
        Lines { first: unsafe { first.add(start) }, count, _memory: Memory::Own(Own(words)) }
    }

    #[inline(always)]
    fn words(&self) -> &[W] {
        // SAFETY: there are so many words from the first on, from the host or the heap, initialised to zero, and
        // they stay while this lives.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count * LINE_WORDS) }
    }

    /// Returns word `i` of all lines.
    #[inline(always)]
    pub(super) fn word(&self, i: usize) -> &W {
        &self.words()[i]
    }

    /// Prefetches the line of word `i`, which need not exist.
    #[inline(always)]
    pub(super) fn prefetch(&self, i: usize) {
        pmem::arch::prefetch(self.first.as_ptr().wrapping_add(i).cast());
    }

    /// Returns the words from `i` on, or `None` if there are none.
    #[inline(always)]
    pub(super) fn behind(&self, i: usize) -> Option<&[W]> {
        self.words().get(i..)
    }
}

impl<W> Deref for Lines<W> {
    type Target = [Line<W>];

    #[inline(always)]
    fn deref(&self) -> &[Line<W>] {
        // SAFETY: a line is so many words, one after the other, and there are `count` lines.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr().cast(), self.count) }
    }
}

/// Maps a signature to a number below `count`.
#[inline(always)]
pub(super) fn share(signature: u64, count: usize) -> usize {
    ((u128::from(signature) * count as u128) >> 64) as usize
}
