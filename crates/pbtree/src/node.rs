//! Nodes: words, and searches among them. A reader holds the node's lock; a writer holds the lock exclusively.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Release};

use heap::Place;
use pmem::{LINE_BYTES, Medium, Offset, Span, seal, unseal};

use crate::Error;
use crate::canary;
use crate::key;
use crate::layout::{LEVEL_MAX, NODE_HEADER_BYTES, PAIR_BYTES, node_bytes, pairs};
use crate::word;

/// The most lines of a node that are prefetched: all of one of the default order. The processor prefetches the lines
/// behind them.
const NODE_LINES_AHEAD: u64 = 16;
/// Parts of a searched range, between which keys are prefetched together: seven keys, of which three are compared.
const EIGHTHS: usize = 8;

/// The contents of a node's meta word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) level: u8,
    pub(crate) count: usize,
}

impl Meta {
    pub(crate) fn word(self) -> u64 {
        seal(u64::from(self.level) | (self.count as u64) << 8)
    }
}

/// A node at its offset.
pub(crate) struct Node<'a, M: Medium> {
    pub(crate) medium: &'a M,
    pub(crate) at: Offset,
    order: usize,
}

impl<M: Medium> Clone for Node<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Medium> Copy for Node<'_, M> {}

impl<'a, M: Medium> Node<'a, M> {
    pub(crate) fn new(medium: &'a M, at: Offset, order: usize) -> Node<'a, M> {
        Node { medium, at, order }
    }

    pub(crate) fn meta(self) -> Result<Meta, Error> {
        let payload = unseal(self.medium.load(self.at, Acquire));
        let meta = payload.map(|word| Meta { level: word as u8, count: (word >> 8) as usize });
        let is_possible = |meta: &Meta| meta.count <= self.order && meta.level <= LEVEL_MAX;
        meta.filter(is_possible).ok_or_else(|| Error::damaged(self.at, "a node's meta word is damaged"))
    }

    pub(crate) fn set_meta(self, meta: Meta) {
        self.medium.store(self.at, meta.word(), Release);
    }

    /// Returns the offset of pair `i`.
    fn pair_at(self, i: usize) -> Offset {
        self.at.plus(NODE_HEADER_BYTES + i as u64 * PAIR_BYTES)
    }

    pub(crate) fn value_at(self, i: usize) -> Offset {
        self.pair_at(i).plus(8)
    }

    #[inline]
    pub(crate) fn key_word(self, i: usize) -> u64 {
        self.medium.load(self.pair_at(i), Acquire)
    }

    #[inline]
    pub(crate) fn value_word(self, i: usize) -> u64 {
        self.medium.load(self.value_at(i), Acquire)
    }

    #[inline]
    pub(crate) fn pair(self, i: usize) -> (u64, u64) {
        (self.key_word(i), self.value_word(i))
    }

    /// Returns the words of these pairs, for a reader of many.
    pub(crate) fn words(self, within: Range<usize>) -> Result<&'a [[u8; PAIR_BYTES as usize]], Error> {
        // SAFETY: a user of a node holds its lock (see the module's head), and no thread stores to it then.
        let words = unsafe { self.medium.bytes(self.pairs(within.start, within.end)) }?;
        Ok(words.as_chunks().0)
    }

    pub(crate) fn set_pair(self, i: usize, (key, value): (u64, u64)) {
        self.medium.store(self.pair_at(i), key, Release);
        self.medium.store(self.value_at(i), value, Release);
    }

    /// Returns the span of the meta word.
    pub(crate) fn meta_span(self) -> Span {
        self.at.span(8)
    }

    /// Returns the span of pairs `from` to `past`.
    pub(crate) fn pairs(self, from: usize, past: usize) -> Span {
        pairs(self.at, from, past)
    }

    /// Flushes a new node of this many pairs.
    pub(crate) fn flush_new(self, count: usize) {
        if !self.medium.breaks(canary::NODE_NOT_FLUSHED) {
            self.medium.flush(self.at.span(PAIR_BYTES * (1 + count as u64)));
        }
    }

    /// Moves the pairs from `i` on up by one, and stores a pair at `i`.
    pub(crate) fn insert_pair(self, i: usize, count: usize, pair: (u64, u64)) {
        (i..count).rev().for_each(|j| self.set_pair(j + 1, self.pair(j)));
        self.set_pair(i, pair);
    }

    /// Moves the pairs behind `i` down by one.
    pub(crate) fn remove_pair(self, i: usize, count: usize) {
        (i + 1..count).for_each(|j| self.set_pair(j - 1, self.pair(j)));
    }

    /// Returns the offset of the word of child `i`: child 0 is before the pairs.
    pub(crate) fn child_at(self, i: usize) -> Offset {
        if i == 0 { self.at.plus(8) } else { self.value_at(i - 1) }
    }

    /// Returns child `i`: all keys of the children before it are below separator `i - 1`.
    pub(crate) fn child(self, i: usize) -> Result<Place, Error> {
        let at = self.child_at(i);
        word::place(at, self.medium.load(at, Acquire))
    }

    /// Reads and checks the key of pair `i`.
    pub(crate) fn key(self, i: usize) -> Result<&'a [u8], Error> {
        // SAFETY: a user of a node holds its lock (see the module's head).
        unsafe { key::read(self.medium, self.pair_at(i), self.key_word(i)) }
    }

    /// Prefetches the node's lines, up to [`NODE_LINES_AHEAD`].
    #[inline]
    pub(crate) fn prefetch(self) {
        let line_count = node_bytes(self.order).div_ceil(LINE_BYTES).min(NODE_LINES_AHEAD);
        (0..line_count).for_each(|line| self.medium.prefetch_line(self.at.plus(line * LINE_BYTES)));
    }

    /// Prefetches the start of a pair's key.
    #[inline(always)]
    pub(crate) fn prefetch_key(self, i: usize) {
        word::prefetch_start(self.medium, self.key_word(i), 1);
    }

    /// Prefetches the first lines of a leaf's value.
    #[inline(always)]
    pub(crate) fn prefetch_value_start(self, i: usize, line_count: u64) {
        word::prefetch_start(self.medium, self.value_word(i), line_count);
    }

    /// Prefetches a leaf's value, or its first lines.
    #[inline]
    pub(crate) fn prefetch_value(self, i: usize, lines_max: u64) {
        word::prefetch(self.medium, self.value_word(i), lines_max);
    }

    /// Returns the end of this many eighths of these pairs.
    #[inline(always)]
    fn eighth(within: &Range<usize>, number: usize) -> usize {
        within.start + within.len() * number / EIGHTHS
    }

    /// Prefetches the keys that the next three steps of a search may compare, or all keys if there are no more than
    /// that.
    #[inline]
    pub(crate) fn prefetch_eighths(self, within: &Range<usize>) {
        (1..EIGHTHS).for_each(|number| self.prefetch_key(Self::eighth(within, number)));
    }

    /// Returns the first of these keys for which `goes_before` is false; it is true for all keys before that one.
    pub(crate) fn partition(
        self,
        mut within: Range<usize>,
        goes_before: impl Fn(&[u8]) -> bool,
    ) -> Result<usize, Error> {
        while !within.is_empty() {
            self.prefetch_eighths(&within);
            let (whole, mut low, mut high) = (within.clone(), 0, EIGHTHS);
            while high - low > 1 {
                let number = low.midpoint(high);
                let middle = Self::eighth(&whole, number);
                // In a short range two eighths may end at the same key.
                if middle < within.start || middle < within.end && goes_before(self.key(middle)?) {
                    (low, within.start) = (number, within.start.max(middle + 1));
                } else {
                    (high, within.end) = (number, within.end.min(middle));
                }
            }
        }
        Ok(within.start)
    }

    /// Returns the position for a key that is not among a leaf's pairs.
    pub(crate) fn gap_for(self, count: usize, key: &[u8]) -> Result<usize, Error> {
        self.partition(0..count, |found| found < key)
    }

    /// Returns the position of a key among a leaf's pairs, or the position where it would be inserted. A key hidden
    /// by damage to its word is an error: the search for its position passes its pair and reads the key.
    pub(crate) fn place_of(self, count: usize, key: (&[u8], u32)) -> Result<Result<usize, usize>, Error> {
        match self.find(count, key, |i| self.prefetch_value(i, 1))? {
            Some(i) => Ok(Ok(i)),
            None => Ok(Err(self.gap_for(count, key.0)?)),
        }
    }

    /// Finds a key with this checksum by the check bits in the key words. Of the other keys, only about one in
    /// 256 is read. `ask` may prefetch data of a pair whose key is about to be compared.
    #[inline]
    pub(crate) fn find(
        self,
        count: usize,
        (key, checksum): (&[u8], u32),
        ask: impl Fn(usize),
    ) -> Result<Option<usize>, Error> {
        for i in 0..count {
            if word::check_of(self.key_word(i)) == checksum as u8 {
                ask(i);
                if self.key(i)? == key {
                    return Ok(Some(i));
                }
            }
        }
        Ok(None)
    }

    /// Returns the number of deleted keys of a leaf.
    pub(crate) fn dead_count(self, count: usize) -> usize {
        (0..count).filter(|&i| self.value_word(i) == 0).count()
    }
}
