//! Buckets of four slots, as in Level hashing and, for comparison, in PFHT: 128 bytes, two cache lines.
//!
//! ```text
//! +31i   slot i: key 16, value 15
//! +124   a token for each slot; all four are in one word, with the last bytes of slot 3
//! ```
//!
//! # A move
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the item is written into a free slot of its other bucket, as an insert; durable | two equal items |
//! | 2 its old slot is emptied; durable | one item |
//!
//! Opening removes one of two equal items.

use pmem::{Medium, Offset};

use crate::item::{ITEM_BYTES, Item};
use crate::region::{Region, TABLE, Words};
use crate::{Result, canary};

/// Slots of a bucket.
pub(crate) const SLOT_COUNT: usize = 4;
/// Bytes of a bucket.
pub(crate) const BUCKET_BYTES: u64 = 128;

const TOKENS: u64 = 120;
const TOKENS_SHIFT: usize = 32;

/// A slot: its bucket and its index in the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) bucket: u64,
    i: usize,
}

pub(crate) struct Buckets<M>(pub(crate) Region<M>);

impl<M: Medium> Buckets<M> {
    fn at(bucket: u64) -> Offset {
        TABLE.plus(bucket * BUCKET_BYTES)
    }

    /// Prefetches these buckets together, and returns them.
    #[inline(always)]
    pub(crate) fn asked(&self, buckets: [u64; 2]) -> [u64; 2] {
        buckets.into_iter().for_each(|bucket| self.0.ask_for(Self::at(bucket).span(BUCKET_BYTES)));
        buckets
    }

    fn tokens(&self, bucket: u64) -> [u8; SLOT_COUNT] {
        ((self.0.word(Self::at(bucket).plus(TOKENS)) >> TOKENS_SHIFT) as u32).to_le_bytes()
    }

    /// Returns the number of used slots.
    pub(crate) fn filled(&self, bucket: u64) -> usize {
        self.tokens(bucket).iter().filter(|token| **token != 0).count()
    }

    pub(crate) fn free(&self, bucket: u64) -> Option<Slot> {
        self.tokens(bucket).iter().position(|token| *token == 0).map(|i| Slot { bucket, i })
    }

    /// Iterates over the items of a bucket.
    #[inline(always)]
    pub(crate) fn items(&self, bucket: u64) -> impl Iterator<Item = (Slot, Item)> + '_ {
        let used = self.tokens(bucket).into_iter().enumerate().filter(|(_, token)| *token != 0);
        used.map(move |(i, token)| (Slot { bucket, i }, Item { bytes: self.bytes(Slot { bucket, i }), token }))
    }

    #[inline(always)]
    fn bytes(&self, Slot { bucket, i }: Slot) -> [u8; ITEM_BYTES] {
        let (start, mut bytes) = (i * ITEM_BYTES, [0; 40]);
        for (word, at) in (start / 8..=(start + ITEM_BYTES - 1) / 8).zip((0..).step_by(8)) {
            bytes[at..at + 8].copy_from_slice(&self.0.word(Self::at(bucket).plus(8 * word as u64)).to_le_bytes());
        }
        *bytes[start % 8..].first_chunk().expect("an item fits in five words")
    }

    /// Finds the key's slot among those of `buckets`.
    #[inline(always)]
    pub(crate) fn find(&self, key: &[u8], mut buckets: impl Iterator<Item = u64>) -> Option<(Slot, Item)> {
        buckets.find_map(|bucket| self.items(bucket).find(|(_, item)| item.key() == key))
    }

    /// Returns the words of a slot that holds these bytes.
    fn words(&self, Slot { bucket, i }: Slot, bytes: &[u8; ITEM_BYTES]) -> Words {
        let start = i * ITEM_BYTES;
        let with = |word: usize| {
            let at = Self::at(bucket).plus(8 * word as u64);
            let mut now = self.0.word(at).to_le_bytes();
            for (at, byte) in (word * 8..).zip(&mut now) {
                *byte = at.checked_sub(start).and_then(|i| bytes.get(i)).copied().unwrap_or(*byte);
            }
            (at, u64::from_le_bytes(now))
        };
        (start / 8..=(start + ITEM_BYTES - 1) / 8).map(with).collect()
    }

    /// Returns `word`, the word of tokens, with the token of slot `i` changed.
    fn with_token(word: u64, i: usize, token: u8) -> u64 {
        let shift = TOKENS_SHIFT + 8 * i;
        word & !(0xFF << shift) | u64::from(token) << shift
    }

    /// Writes an item into a free slot; the same word empties slot `old` of the bucket. Two fences.
    pub(crate) fn fill(&self, slot: Slot, item: &Item, old: Option<Slot>) -> Result<()> {
        self.0.count(if old.is_some() { 0 } else { 1 });
        let (words, at) = (self.words(slot, &item.bytes), Self::at(slot.bucket).plus(TOKENS));
        // The last slot's end is in the word of the tokens.
        let word = words.last().filter(|(last, _)| *last == at).map_or_else(|| self.0.word(at), |(_, word)| *word);
        let word = Self::with_token(word, slot.i, item.token);
        self.0.write(&words, (at, old.map_or(word, |old| Self::with_token(word, old.i, 0))))
    }

    /// Empties a slot. One fence.
    pub(crate) fn empty(&self, slot: Slot) -> Result<()> {
        self.0.count(-1);
        let at = Self::at(slot.bucket).plus(TOKENS);
        self.0.put(at, Self::with_token(self.0.word(at), slot.i, 0))
    }

    /// Empties the key's slot; returns false if there is none.
    pub(crate) fn delete(&self, key: &[u8], buckets: impl Iterator<Item = u64>) -> Result<bool> {
        let Some((slot, _)) = self.find(key, buckets) else { return Ok(false) };
        self.empty(slot).map(|()| true)
    }

    /// Changes the item in a slot, with the log. Four fences.
    pub(crate) fn change(&self, slot: Slot, item: &Item) -> Result<()> {
        let (mut words, at) = (self.words(slot, &item.bytes), Self::at(slot.bucket).plus(TOKENS));
        if words.last().is_none_or(|(last, _)| *last != at) {
            words.push((at, self.0.word(at)));
        }
        let last = words.len() - 1;
        words[last].1 = Self::with_token(words[last].1, slot.i, item.token);
        self.0.change(&words)
    }

    /// Frees a slot in one of `buckets` by moving one item to the bucket that `other` returns.
    pub(crate) fn make_space(
        &self,
        buckets: impl Iterator<Item = u64>,
        other: impl Fn(&Item, u64) -> u64,
    ) -> Result<Option<Slot>> {
        for bucket in buckets {
            for (slot, item) in self.items(bucket) {
                let Some(free) = Some(other(&item, bucket)).filter(|to| *to != bucket).and_then(|to| self.free(to))
                else {
                    continue;
                };
                if self.0.medium.breaks(canary::EMPTIED_BEFORE_MOVED) {
                    self.empty(slot)?;
                }
                self.fill(free, &item, None)?;
                if !self.0.medium.breaks(canary::EMPTIED_BEFORE_MOVED) {
                    self.empty(slot)?;
                }
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Recovers after a crash: counts items, and removes the second one of two equal items. `candidates` returns the
    /// buckets in which a key may be.
    pub(crate) fn recover<I: Iterator<Item = u64>>(&self, count: u64, candidates: impl Fn(&[u8]) -> I) -> Result<()> {
        (0..count).for_each(|bucket| self.0.count(self.filled(bucket) as i64));
        if self.0.medium.breaks(canary::DUPLICATE_LEFT) {
            return Ok(());
        }
        for bucket in 0..count {
            for (slot, item) in self.items(bucket) {
                let first = self.find(item.key(), candidates(item.key()));
                if first.is_some_and(|(first, _)| first != slot) {
                    self.empty(slot)?;
                }
            }
        }
        Ok(())
    }
}
