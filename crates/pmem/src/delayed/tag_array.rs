//! Tags: the numbers of the lines or blocks that a cache or a device holds, and the times at which they arrive.
//!
//! A number belongs to one set of [`WAYS`] words, the last used first. A word has the number's tag and a stamp. Two
//! threads that change a set at the same time may lose a tag, which then counts as missing.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::Dram;

/// Tags of a set: as many words as a line has.
pub(super) const WAYS: usize = 8;

const STAMP_BITS: u32 = 36;
const STAMP: u64 = (1 << STAMP_BITS) - 1;
/// Scatters the high bits of numbers: 2^64 divided by the golden ratio.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The time at which something arrives, modulo 2^36 ticks (13 s and more), or that it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp(u64);

impl Stamp {
    /// There.
    pub(super) const HERE: Stamp = Stamp(0);

    pub(super) fn at(tick: u64) -> Stamp {
        Stamp((tick & STAMP).max(1))
    }

    #[inline(always)]
    pub(super) fn is_here(self) -> bool {
        self.0 == 0
    }

    /// Returns the ticks left at `now`. A time more than `longest_ticks` ahead has passed.
    pub(super) fn left_ticks(self, now: u64, longest_ticks: u64) -> u64 {
        let left = self.0.wrapping_sub(now) & STAMP;
        if self.is_here() || left > longest_ticks { 0 } else { left }
    }
}

/// Tags that share the low bits of their numbers.
#[repr(align(64))]
pub(super) struct Set([AtomicU64; WAYS]);

impl Set {
    pub(super) const fn new() -> Set {
        Set([const { AtomicU64::new(0) }; WAYS])
    }

    #[inline(always)]
    fn word(&self, way: usize) -> u64 {
        self.0[way].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn way_of(&self, tag: u64) -> Option<usize> {
        (0..WAYS).find(|&way| self.word(way) >> STAMP_BITS == tag)
    }

    /// Puts a word first, and moves those before `way` back.
    fn put_first(&self, way: usize, word: u64) {
        (0..way).rev().for_each(|before| self.0[before + 1].store(self.word(before), Ordering::Relaxed));
        self.0[0].store(word, Ordering::Relaxed);
    }
}

/// All sets, of a number that is a power of two.
#[derive(Clone, Copy)]
pub(super) struct Tags<'a>(pub(super) &'a [Set]);

impl Tags<'_> {
    /// Returns the set of a number, and the rest of the number as its tag. As in processors, the set depends on all
    /// bits, so that numbers with a stride use all sets.
    #[inline(always)]
    fn place(&self, number: u64) -> (&Set, u64) {
        let rest = number >> self.0.len().trailing_zeros();
        let set = number ^ (rest.wrapping_mul(SCATTER) >> 32);
        (&self.0[set as usize & (self.0.len() - 1)], (rest + 1) & (!0 >> STAMP_BITS))
    }

    /// Returns the number's stamp, if it is held. It is then the last used.
    #[inline(always)]
    pub(super) fn find(&self, number: u64) -> Option<Stamp> {
        let (set, tag) = self.place(number);
        let way = set.way_of(tag)?;
        let word = set.word(way);
        if way > 0 {
            set.put_first(way, word);
        }
        Some(Stamp(word & STAMP))
    }

    /// Holds the number, in place of the one that was not used for longest.
    pub(super) fn hold(&self, number: u64, Stamp(stamp): Stamp) {
        let (set, tag) = self.place(number);
        set.put_first(set.way_of(tag).unwrap_or(WAYS - 1), tag << STAMP_BITS | stamp);
    }

    /// Holds the number no more.
    pub(super) fn drop_number(&self, number: u64) {
        let (set, tag) = self.place(number);
        set.way_of(tag).into_iter().for_each(|way| set.0[way].store(0, Ordering::Relaxed));
    }
}

/// Sets in memory of the host.
pub(super) struct Sets {
    sets: NonNull<Set>,
    count: usize,
    dram: &'static dyn Dram,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Sets {}
// SAFETY: sets are changed by atomic stores only.
unsafe impl Sync for Sets {}

impl Sets {
    /// Allocates a power of two of sets, at most `count` and at least one; `None` if there is no memory.
    pub(super) fn allocate(count: usize, dram: &'static dyn Dram) -> Option<Sets> {
        let count = 1 << count.max(1).ilog2();
        let sets = dram.allocate(Layout::array::<Set>(count).ok()?)?.cast();
        Some(Sets { sets, count, dram })
    }

    pub(super) fn tags(&self) -> Tags<'_> {
        // SAFETY: the memory was allocated for so many sets; zeros are an empty one.
        Tags(unsafe { &*ptr::slice_from_raw_parts(self.sets.as_ptr(), self.count) })
    }
}

impl Drop for Sets {
    fn drop(&mut self) {
        let layout = Layout::array::<Set>(self.count).expect("it was allocated");
        // SAFETY: allocated with this layout, and nothing refers to it any more.
        unsafe { self.dram.deallocate(self.sets.cast(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_used_stay() {
        let sets = [Set::new()];
        let tags = Tags(&sets);
        (0..8).for_each(|number| tags.hold(number, Stamp::HERE));
        assert_eq!(tags.find(0), Some(Stamp::HERE), "it is the last used now");
        tags.hold(8, Stamp::at(77));
        assert_eq!((tags.find(1), tags.find(0)), (None, Some(Stamp::HERE)), "the longest unused left");
        assert_eq!(tags.find(8), Some(Stamp::at(77)));
        tags.hold(8, Stamp::HERE);
        assert_eq!(tags.find(8), Some(Stamp::HERE), "held once");
        tags.drop_number(8);
        assert_eq!((tags.find(8), tags.find(2)), (None, Some(Stamp::HERE)));
    }

    #[test]
    fn numbers_with_a_stride_use_all_sets() {
        let sets = [const { Set::new() }; 16];
        let tags = Tags(&sets);
        let strided = |stride: u64| (0..64).map(move |i| i * stride);
        for stride in [1, 4, 16, 64] {
            strided(stride).for_each(|number| tags.hold(number, Stamp::HERE));
            let held_count = strided(stride).filter(|&number| tags.find(number).is_some()).count();
            assert!(held_count >= 56, "{held_count} of 64 with stride {stride}");
        }
    }

    #[test]
    fn stamp_passes_also_around_its_end() {
        let stamp = Stamp::at((1 << STAMP_BITS) + 50);
        assert_eq!(stamp.left_ticks((1 << STAMP_BITS) + 20, 100), 30);
        assert_eq!(stamp.left_ticks((1 << STAMP_BITS) - 10, 100), 60);
        assert_eq!(stamp.left_ticks((1 << STAMP_BITS) + 51, 100), 0, "passed");
        assert_eq!(Stamp::HERE.left_ticks(1 << STAMP_BITS, 100), 0);
    }
}
