//! Keys that are sought, and their comparison.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use pmem::arch;

use super::layout::{HEAD_BYTES, Heads};
use super::{ChangeError, KeyStart, Keys};
use crate::Position;

/// The reason why an attempt ended early.
#[derive(Debug)]
pub(super) enum Stop<E> {
    /// Another thread changed a node during the attempt: start again from the root.
    Again,
    /// The leaf has no space for another key.
    Full,
    /// Another attempt is useless.
    Failed(ChangeError<E>),
}

impl<E> From<super::NoDram> for Stop<E> {
    fn from(error: super::NoDram) -> Stop<E> {
        Stop::Failed(ChangeError::NoDram { wanted_bytes: error.wanted_bytes })
    }
}

/// A key that is sought. Its item is read only if the bytes in memory do not decide a comparison.
pub(super) struct Target<'a, K> {
    pub(super) keys: &'a K,
    bytes: &'a [u8],
    key_bytes: usize,
    /// The item from which to read the whole key, or `None` if the key is in memory.
    item: Option<Position>,
}

impl<'a, K: Keys> Target<'a, K> {
    #[inline(always)]
    pub(super) fn of_item(keys: &'a K, start: KeyStart<'a>, item: Position) -> Target<'a, K> {
        let KeyStart { bytes, key_bytes } = start;
        Target { keys, bytes, key_bytes, item: (bytes.len() < key_bytes).then_some(item) }
    }

    pub(super) fn whole(keys: &'a K, key: &'a [u8]) -> Target<'a, K> {
        Target { keys, bytes: key, key_bytes: key.len(), item: None }
    }

    /// Prefetches the item if it may be read.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        if let Some(item) = self.item {
            self.keys.prefetch(item);
        }
    }

    /// Returns at least the first `len_bytes` of the key, or the whole key.
    #[inline(always)]
    fn at_least(&mut self, len_bytes: usize) -> Result<&'a [u8], Stop<K::Error>> {
        if self.bytes.len() < len_bytes.min(self.key_bytes) {
            self.read_item()?;
        }
        Ok(self.bytes)
    }

    #[cold]
    fn read_item(&mut self) -> Result<(), Stop<K::Error>> {
        if let Some(item) = self.item.take() {
            self.bytes = key_of(self.keys, item)?;
            self.key_bytes = self.bytes.len();
        }
        Ok(())
    }

    /// Returns the first `len_bytes` of the key, or the whole key if it is shorter.
    pub(super) fn start(&mut self, len_bytes: usize) -> Result<&'a [u8], Stop<K::Error>> {
        let bytes = self.at_least(len_bytes)?;
        Ok(&bytes[..bytes.len().min(len_bytes)])
    }

    /// Returns the head of the key behind `prefix_bytes`.
    #[inline(always)]
    pub(super) fn head(&mut self, prefix_bytes: usize) -> Result<u64, Stop<K::Error>> {
        Ok(head_of(self.at_least(prefix_bytes + HEAD_BYTES)?, prefix_bytes))
    }

    /// Returns true if the whole key is in memory, and the item at `position` has it. False means nothing.
    #[inline(always)]
    pub(super) fn is_at(&self, position: Position) -> bool {
        self.bytes.len() == self.key_bytes && self.keys.has_key(position, self.bytes)
    }

    /// Compares the key with `other`.
    pub(super) fn compare(&mut self, other: &[u8]) -> Result<Ordering, Stop<K::Error>> {
        let at_hand = self.bytes.len().min(other.len());
        let decided = self.bytes[..at_hand].cmp(&other[..at_hand]);
        if decided != Ordering::Equal {
            return Ok(decided);
        }
        // All bytes in memory are equal. The lengths decide, unless both have further bytes.
        Ok(self.at_least(other.len())?.cmp(other).then(self.key_bytes.cmp(&other.len())))
    }
}

/// Returns the whole key of an item.
pub(super) fn key_of<K: Keys>(keys: &K, item: Position) -> Result<&[u8], Stop<K::Error>> {
    keys.key(item).map_err(|error| Stop::Failed(ChangeError::Keys(error)))
}

/// Returns the head of `key` behind `prefix_bytes`.
#[inline(always)]
pub(super) fn head_of(key: &[u8], prefix_bytes: usize) -> u64 {
    let rest = key.get(prefix_bytes..).unwrap_or_default();
    if let Some(head) = rest.first_chunk::<HEAD_BYTES>() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(head)
}

/// Returns the length of the common prefix of two strings.
pub(super) fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the shortest string that is above `below` and not above `key`, which is above `below`.
pub(super) fn shortest_between<'k>(below: &[u8], key: &'k [u8]) -> &'k [u8] {
    &key[..common_bytes(below, key) + 1]
}

/// Returns the start and the end of the heads equal to `head`, among the first `count`.
#[inline(always)]
pub(super) fn equal_heads<const N: usize>(heads: &Heads<N>, count: usize, head: u64) -> (usize, usize) {
    let below = arch::count_below(heads, head).min(count);
    let equal = heads[below..count].iter().take_while(|other| other.load(Relaxed) == head).count();
    (below, below + equal)
}

/// Returns the first index in `from..past` for which `is_before` is false; it is true for all indexes before that.
pub(super) fn first_not_before<E>(
    (mut from, mut past): (usize, usize),
    mut is_before: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    while from < past {
        let middle = from.midpoint(past);
        if is_before(middle)? {
            from = middle + 1;
        } else {
            past = middle;
        }
    }
    Ok(from)
}
