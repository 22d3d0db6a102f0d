//! Leaves: searching a leaf, and changing one under its lock.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use super::Keys;
use super::layout::{LEAF_COUNT_MAX, Leaf, UNUSED_HEAD};
use super::target::{Stop, Target, equal_heads, first_not_before, key_of};
use crate::Position;

/// The head of a key, and its item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) head: u64,
    pub(super) position: Position,
}

/// The place of a key among those of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    /// The number of keys below it.
    pub(super) index: usize,
    /// True if the key itself is at this index.
    pub(super) is_there: bool,
}

impl Leaf {
    /// Returns the number of items. It may be wrong while another thread changes the leaf, but it is never too
    /// large for the arrays.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        usize::from(self.count.load(Relaxed)).min(LEAF_COUNT_MAX)
    }

    #[inline(always)]
    pub(super) fn prefix_bytes(&self) -> usize {
        usize::from(self.prefix_bytes.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn position(&self, index: usize) -> Position {
        let (low, high) = (self.low_words[index].load(Relaxed), self.high_words[index].load(Relaxed));
        Position::from_48_bits(u64::from(low) | u64::from(high) << 32)
    }

    /// Returns the items `from..past`, which are at most those of a full leaf.
    #[inline(always)]
    pub(super) fn positions(
        &self,
        from: usize,
        past: usize,
    ) -> impl DoubleEndedIterator<Item = Position> + ExactSizeIterator {
        let words = self.low_words[from..past].iter().zip(&self.high_words[from..past]);
        words.map(|(low, high)| {
            Position::from_48_bits(u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32)
        })
    }

    #[inline(always)]
    pub(super) fn set_position(&self, index: usize, position: Position) {
        let bits = position.to_48_bits();
        self.low_words[index].store(bits as u32, Relaxed);
        self.high_words[index].store((bits >> 32) as u16, Relaxed);
    }

    pub(super) fn entry(&self, index: usize) -> Entry {
        Entry { head: self.heads[index].load(Relaxed), position: self.position(index) }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.count()).map(|index| self.entry(index))
    }

    /// Returns the index of `old` among the keys of this head.
    #[inline(always)]
    pub(super) fn find_item(&self, head: u64, old: Position) -> Option<usize> {
        let (from, past) = equal_heads(&self.heads, self.count(), head);
        (from..past).find(|&index| self.position(index) == old)
    }

    /// Returns the item whose key [`Leaf::find`] would compare first. The position may be invalid while another
    /// thread changes the leaf.
    #[inline(always)]
    pub(super) fn likely<K: Keys>(&self, target: &mut Target<'_, K>) -> Result<Option<Position>, Stop<K::Error>> {
        let (from, past) = equal_heads(&self.heads, self.count(), target.head(self.prefix_bytes())?);
        Ok((from < past).then(|| self.position(from.midpoint(past))))
    }

    /// Finds the place of the target. It reads keys of items only for ties, each after `check` has confirmed that
    /// the leaf is unchanged.
    #[inline(always)]
    pub(super) fn find<K: Keys>(
        &self,
        target: &mut Target<'_, K>,
        check: impl Fn() -> Result<(), Stop<K::Error>>,
    ) -> Result<Spot, Stop<K::Error>> {
        let head = target.head(self.prefix_bytes())?;
        let equal = equal_heads(&self.heads, self.count(), head);
        if equal.0 == equal.1 {
            return Ok(Spot { index: equal.0, is_there: false });
        }
        if equal.1 - equal.0 == 1 {
            let position = self.position(equal.0);
            check()?;
            if target.is_at(position) {
                return Ok(Spot { index: equal.0, is_there: true });
            }
        }
        self.find_among(equal, target, check)
    }

    #[cold]
    #[inline(never)]
    fn find_among<K: Keys>(
        &self,
        (from, past): (usize, usize),
        target: &mut Target<'_, K>,
        check: impl Fn() -> Result<(), Stop<K::Error>>,
    ) -> Result<Spot, Stop<K::Error>> {
        let mut is_there = false;
        let mut is_before = |index| -> Result<bool, Stop<K::Error>> {
            let position = self.position(index);
            check()?;
            let order = target.compare(key_of(target.keys, position)?)?;
            is_there |= order.is_eq();
            Ok(order.is_gt())
        };
        // Ascending inserts arrive here, in the last leaf, whose range has no end and so no prefix.
        if self.next.load(Relaxed).is_null() && is_before(past - 1)? {
            return Ok(Spot { index: past, is_there });
        }
        let index = first_not_before((from, past), is_before)?;
        Ok(Spot { index, is_there })
    }

    /// Inserts `entry` at `index`. The leaf is locked and not full.
    #[inline(always)]
    pub(super) fn insert(&self, index: usize, entry: Entry) {
        let count = self.count();
        for from in (index..count).rev() {
            self.move_entry(from, from + 1);
        }
        self.set(index, entry);
        self.count.store(count as u16 + 1, Relaxed);
    }

    /// Removes the entry at `index`. The leaf is locked.
    #[inline(always)]
    pub(super) fn remove(&self, index: usize) {
        let last = self.count() - 1;
        for to in index..last {
            self.move_entry(to + 1, to);
        }
        self.heads[last].store(UNUSED_HEAD, Relaxed);
        self.count.store(last as u16, Relaxed);
    }

    /// Replaces all entries. The leaf is locked, or not linked yet.
    pub(super) fn fill(&self, prefix_bytes: usize, entries: &[Entry]) {
        self.prefix_bytes.store(prefix_bytes as u16, Relaxed);
        self.count.store(entries.len() as u16, Relaxed);
        for (index, &entry) in entries.iter().enumerate() {
            self.set(index, entry);
        }
        for head in &self.heads[entries.len()..] {
            head.store(UNUSED_HEAD, Relaxed);
        }
    }

    /// Makes fresh memory an empty leaf.
    pub(super) fn reset(&self) {
        self.version.reset();
        self.next.store(ptr::null_mut(), Relaxed);
        self.fill(0, &[]);
    }

    #[inline(always)]
    fn set(&self, index: usize, entry: Entry) {
        self.heads[index].store(entry.head, Relaxed);
        self.set_position(index, entry.position);
    }

    #[inline(always)]
    fn move_entry(&self, from: usize, to: usize) {
        self.heads[to].store(self.heads[from].load(Relaxed), Relaxed);
        self.low_words[to].store(self.low_words[from].load(Relaxed), Relaxed);
        self.high_words[to].store(self.high_words[from].load(Relaxed), Relaxed);
    }
}
