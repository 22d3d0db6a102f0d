//! The change of a key by a write, as stored in a queue.

use arrayvec::ArrayVec;
use index::Position;

use super::ring::CHANGE_WORDS;

/// Changes that are applied together: as many descents as a core has cache misses in flight, and some more.
pub(super) const GROUP_COUNT: usize = 16;

/// The changes of one group.
pub(super) type Group = ArrayVec<Change, GROUP_COUNT>;

/// Bytes of a key that are stored in the change. A longer key is read from its item.
pub(super) const INLINE_BYTES: usize = 39;
/// The length of a longer key.
const LONGER: u8 = u8::MAX;

/// The change of a key: to a new item, from an old one, or both.
///
/// ```text
/// +0  position of the new item, 0 if the key was deleted
/// +8  position of the old item, 0 if the key is new
/// +16 length of the key, u8; 255 if it is longer than 39 bytes
/// +17 the key's first bytes, padded with zeros
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) new: Option<Position>,
    pub(super) old: Option<Position>,
    len: u8,
    head: [u8; INLINE_BYTES],
}

impl Change {
    #[inline]
    pub(super) fn of(key: &[u8], old: Option<Position>, new: Option<Position>) -> Change {
        let mut head = [0; INLINE_BYTES];
        let inline = key.len().min(INLINE_BYTES);
        head[..inline].copy_from_slice(&key[..inline]);
        let len = if key.len() > INLINE_BYTES { LONGER } else { key.len() as u8 };
        Change { new: new.map(Position::item), old: old.map(Position::item), len, head }
    }

    /// Returns the key, if all of it is stored in the change.
    #[inline]
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.head.get(..usize::from(self.len))
    }

    /// Returns the key's first bytes.
    pub(super) fn head(&self) -> &[u8; INLINE_BYTES] {
        &self.head
    }

    #[inline]
    pub(super) fn to_words(self) -> [u64; CHANGE_WORDS] {
        let mut bytes = [0; 8 * (CHANGE_WORDS - 2)];
        bytes[0] = self.len;
        bytes[1..].copy_from_slice(&self.head);
        let word = |position: Option<Position>| position.map_or(0, Position::word);
        std::array::from_fn(|i| match i {
            0 => word(self.new),
            1 => word(self.old),
            _ => u64::from_le_bytes(bytes[8 * (i - 2)..][..8].try_into().expect("eight bytes")),
        })
    }

    /// The words of a place that stands for changes outside the queue: see `many`.
    pub(super) const MANY: [u64; CHANGE_WORDS] = [u64::MAX; CHANGE_WORDS];

    /// Returns the change in a place of a queue; `None` if the writer changed nothing.
    #[inline]
    pub(super) fn from_words(words: [u64; CHANGE_WORDS]) -> Option<Change> {
        let position = |word: u64| (word != 0).then(|| Position::from_word(word));
        let (new, old) = (position(words[0]), position(words[1]));
        if new.is_none() && old.is_none() {
            return None;
        }
        let mut bytes = [0; 8 * (CHANGE_WORDS - 2)];
        bytes.as_chunks_mut().0.iter_mut().zip(&words[2..]).for_each(|(to, from)| *to = from.to_le_bytes());
        let [len, head @ ..] = bytes;
        Some(Change { new, old, len, head })
    }
}

const _: () = assert!(1 + INLINE_BYTES == 8 * (CHANGE_WORDS - 2));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_survives_queue() {
        let [old, new] = [64, 4096].map(|word| Some(Position::from_word(word)));
        for len in [0, 1, 16, INLINE_BYTES, INLINE_BYTES + 1, 300] {
            let key: Vec<u8> = (0..len).map(|i| i as u8 ^ 0xA5).collect();
            for (old, new) in [(None, new), (old, new), (old, None)] {
                let change = Change::of(&key, old, new);
                assert_eq!(Change::from_words(change.to_words()), Some(change));
                assert_eq!(change.key(), (len <= INLINE_BYTES).then_some(&key[..]));
            }
        }
        assert_eq!(Change::from_words([0; CHANGE_WORDS]), None);
    }
}
