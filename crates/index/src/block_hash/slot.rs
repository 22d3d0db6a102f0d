//! The bytes of a slot: a small item inline, or the position of a larger one; and the comparison of a slot with a key.
//!
//! ```text
//! kind 0   key 16, value up to 11, zero    27 bytes, then CRC-32C 4
//! kind 1   key length 1, key, value, zero   the same
//! kind 2   signature 8, position 8, zero    the same
//! ```
//!
//! The checksum covers the slot's shape and its 27 bytes.

use std::ptr;

use pmem::Checksum;

use super::layout::{KIND_SHIFT, SLOT_BYTES};
use crate::Position;

/// The number of words for a slot and its shape.
pub(super) const SLOT_WORDS: usize = (SLOT_BYTES + 1) / 8;
/// The bits of the last word at which the shape and the checksum begin.
const SHAPE_SHIFT: u32 = 56;
const CHECKSUM_SHIFT: u32 = 24;
/// The bits of the last word that belong to the slot's bytes.
const BYTES_OF_LAST: u64 = (1 << SHAPE_SHIFT) - 1;
const BODY_BYTES: usize = SLOT_BYTES - 4;
const FIXED_KEY_BYTES: usize = 16;
/// The most bytes of key and value in a slot of kind 1.
const SHORT_BYTES_MAX: usize = BODY_BYTES - 1;
/// The longest value whose length fits into the meta word.
const VALUE_BYTES_MAX: usize = 15;
const LENGTH: u8 = 15;

/// The kind of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Fixed = 0,
    Short = 1,
    Item = 2,
}

/// Returns true if slots of this shape hold the position of an item.
#[inline(always)]
pub(super) fn is_item(shape: u8) -> bool {
    shape >> KIND_SHIFT == Kind::Item as u8
}

/// Returns true if slots of these shapes are of one kind.
#[inline(always)]
pub(super) fn is_alike(one: u8, other: u8) -> bool {
    (one ^ other) >> KIND_SHIFT == 0
}

/// The bytes of a slot, and above them its shape: length and kind as in the meta word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slot([u64; SLOT_WORDS]);

/// The decoded content of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// The item itself.
    Whole {
        /// The key of the item.
        key: &'a [u8],
        /// The value of the item.
        value: &'a [u8],
    },
    /// The position of an item.
    Item {
        /// The signature of the item's key.
        signature: u64,
        /// The place of the item, with its size class.
        position: Position,
    },
    /// A content that is never stored.
    Damaged,
}

impl Slot {
    /// Creates a slot that holds an item inline, without an expiry. Returns `None` if the item is too large.
    #[inline(always)]
    #[must_use]
    pub fn whole(key: &[u8], value: &[u8]) -> Option<Slot> {
        // Most items are larger.
        if value.len() > VALUE_BYTES_MAX || key.len() + value.len() > BODY_BYTES {
            None
        } else {
            Slot::small(key, value)
        }
    }

    #[inline(never)]
    fn small(key: &[u8], value: &[u8]) -> Option<Slot> {
        let mut body = [0; SLOT_WORDS * 8];
        if key.len() == FIXED_KEY_BYTES && value.len() <= BODY_BYTES - FIXED_KEY_BYTES {
            body[..FIXED_KEY_BYTES].copy_from_slice(key);
            body[FIXED_KEY_BYTES..][..value.len()].copy_from_slice(value);
            return Some(Slot::new(Kind::Fixed, value.len(), words_of(&body)));
        }
        if key.len() + value.len() > SHORT_BYTES_MAX {
            return None;
        }
        body[0] = key.len() as u8;
        body[1..][..key.len()].copy_from_slice(key);
        body[1 + key.len()..][..value.len()].copy_from_slice(value);
        Some(Slot::new(Kind::Short, value.len(), words_of(&body)))
    }

    /// Creates a slot with the position of an item.
    #[inline(always)]
    #[must_use]
    pub fn of_item(signature: u64, position: Position) -> Slot {
        Slot::new(Kind::Item, 0, [signature, position.word(), 0, 0])
    }

    /// Creates a slot from words that begin with its body and are zero behind it.
    #[inline(always)]
    fn new(kind: Kind, len_bytes: usize, body: [u64; SLOT_WORDS]) -> Slot {
        let slot = Slot::from_words((kind as u8) << KIND_SHIFT | len_bytes as u8, body);
        let [low, middle, high, last] = slot.0;
        Slot([low, middle, high, last | u64::from(slot.checksum()) << CHECKSUM_SHIFT])
    }

    /// Creates the slot with this shape and the bytes of these words, except the last byte.
    #[inline(always)]
    pub(super) fn from_words(shape: u8, [low, middle, high, last]: [u64; SLOT_WORDS]) -> Slot {
        Slot([low, middle, high, last & BYTES_OF_LAST | u64::from(shape) << SHAPE_SHIFT])
    }

    /// Returns the shape.
    #[inline(always)]
    pub(super) fn shape(&self) -> u8 {
        (self.0[SLOT_WORDS - 1] >> SHAPE_SHIFT) as u8
    }

    /// Returns the bytes, with zero up to the end of the last word.
    #[inline(always)]
    pub(super) fn words(&self) -> [u64; SLOT_WORDS] {
        let [low, middle, high, last] = self.0;
        [low, middle, high, last & BYTES_OF_LAST]
    }

    /// Returns the bytes, followed by the shape.
    #[inline(always)]
    fn bytes(&self) -> &[u8; SLOT_WORDS * 8] {
        // SAFETY: words have no padding, and this crate supports only processors that store the bytes of words in
        // this order.
        unsafe { &*ptr::from_ref(&self.0).cast() }
    }

    #[inline(always)]
    fn checksum(&self) -> u32 {
        // The shape, then the body: three and a half words.
        let [low, middle, high, last] = self.0;
        let words = [low << 8 | u64::from(self.shape()), middle << 8 | low >> 56, high << 8 | middle >> 56];
        let mut covered = [0; BODY_BYTES + 1];
        let (whole, half) = covered.as_chunks_mut::<8>();
        whole.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        half.copy_from_slice(&((last << 8 | high >> 56) as u32).to_le_bytes());
        Checksum::default().update_with(&covered).value()
    }

    /// Returns true if the checksum matches.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        (self.0[SLOT_WORDS - 1] >> CHECKSUM_SHIFT) as u32 == self.checksum()
    }

    /// Returns the content. It does not verify the checksum.
    #[inline(always)]
    #[must_use]
    pub fn content(&self) -> Content<'_> {
        let (len_bytes, bytes) = (usize::from(self.shape() & LENGTH), self.bytes());
        let key_bytes = usize::from(bytes[0]);
        match self.shape() >> KIND_SHIFT {
            0 if len_bytes <= BODY_BYTES - FIXED_KEY_BYTES => Content::Whole {
                key: &bytes[..FIXED_KEY_BYTES],
                value: &bytes[FIXED_KEY_BYTES..FIXED_KEY_BYTES + len_bytes],
            },
            1 if key_bytes + len_bytes <= SHORT_BYTES_MAX => {
                let (key, value) = bytes[1..1 + key_bytes + len_bytes].split_at(key_bytes);
                Content::Whole { key, value }
            }
            2 => Content::Item { signature: self.0[0], position: Position::from_word(self.0[1]) },
            _ => Content::Damaged,
        }
    }

    /// Returns the position of the item, unless the slot holds the item inline.
    #[inline(always)]
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        is_item(self.shape()).then(|| Position::from_word(self.0[1]))
    }
}

/// Converts bytes to words.
fn words_of(bytes: &[u8; SLOT_WORDS * 8]) -> [u64; SLOT_WORDS] {
    let words = bytes.as_chunks::<8>().0;
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// The beginnings of slots that may hold a key, one per kind: the value of the first eight bytes, and a mask of the
/// bits that count. Most slots that are read hold another key, and this check rejects nearly all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads([(u64, u64); 4]);

impl Heads {
    /// A head that no eight bytes match.
    const NONE: (u64, u64) = (1, 0);

    #[inline(always)]
    pub(super) fn of(key: &[u8], signature: u64) -> Heads {
        let of_few = || key.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let first = key.first_chunk().map_or_else(of_few, |bytes| u64::from_le_bytes(*bytes));
        let fixed = if key.len() == FIXED_KEY_BYTES { (first, !0) } else { Heads::NONE };
        let short = match key.len() {
            len @ ..7 => (first << 8 | len as u64, (1 << (8 * (len + 1))) - 1),
            len @ ..=SHORT_BYTES_MAX => (first << 8 | len as u64, !0),
            _ => Heads::NONE,
        };
        Heads([fixed, short, (signature, !0), Heads::NONE])
    }

    /// Returns the head of an inline slot for this key, of the kind of this shape, if all eight bytes count.
    #[inline(always)]
    pub(super) fn of_small(shape: u8, key: &[u8]) -> Option<u64> {
        let first = u64::from_le_bytes(*key.first_chunk()?);
        if shape >> KIND_SHIFT == Kind::Fixed as u8 {
            return (key.len() == FIXED_KEY_BYTES).then_some(first);
        }
        let is_short = shape >> KIND_SHIFT == Kind::Short as u8 && key.len() <= SHORT_BYTES_MAX;
        is_short.then_some(first << 8 | key.len() as u64)
    }

    /// Returns true if a slot of this shape with this head may hold the key.
    #[inline(always)]
    pub(super) fn may_be(&self, shape: u8, head: u64) -> bool {
        let (bytes, counted) = self.0[usize::from(shape >> KIND_SHIFT & 3)];
        head & counted == bytes
    }
}

/// A key to find.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The bytes of the key.
    pub bytes: &'a [u8],
    /// The signature of the key.
    pub signature: u64,
}

impl Key<'_> {
    /// Returns the beginnings of slots that may hold the key.
    #[inline(always)]
    pub(super) fn heads(&self) -> Heads {
        Heads::of(self.bytes, self.signature)
    }

    /// Returns true if `slot` holds the key. If the slot does not decide this, calls `is_key`, which reads the
    /// item.
    #[inline(always)]
    pub(super) fn is_in<E>(
        &self,
        slot: &Slot,
        is_key: &mut impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<bool, E> {
        match slot.content() {
            Content::Whole { key, .. } => Ok(key == self.bytes),
            Content::Item { signature, position } if signature == self.signature => is_key(position),
            _ => Ok(false),
        }
    }

    #[inline(always)]
    pub(super) fn may_be_in(&self, slot: &Slot) -> bool {
        match slot.content() {
            Content::Whole { key, .. } => key == self.bytes,
            Content::Item { signature, .. } => signature == self.signature,
            Content::Damaged => false,
        }
    }
}

/// The function that computes the signature of a key.
pub type Sign = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// Computes signatures.
pub(super) struct Signer(Box<Sign>);

impl Signer {
    pub(super) fn new(sign: Box<Sign>) -> Signer {
        Signer(sign)
    }

    /// Returns the signature of a key.
    #[inline(always)]
    pub(super) fn signature(&self, key: &[u8]) -> u64 {
        (self.0)(key)
    }

    /// Returns the signature of a slot's key, or `None` if the slot is damaged.
    pub(super) fn signature_of(&self, slot: &Slot) -> Option<u64> {
        match slot.content() {
            Content::Whole { key, .. } => Some(self.signature(key)),
            Content::Item { signature, .. } => Some(signature),
            Content::Damaged => None,
        }
    }

    /// Returns the signature of an intact slot's key.
    pub(super) fn signature_of_intact(&self, slot: &Slot) -> Option<u64> {
        self.signature_of(slot).filter(|_| slot.is_intact())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_head_filters_other_keys() {
        let keys: Vec<Vec<u8>> = (0..30).flat_map(|len| [vec![7; len], (0..len as u8).collect()]).collect();
        let slots = |key: &Vec<u8>| {
            [Slot::whole(key, b""), Slot::whole(key, b"value"), Some(Slot::of_item(9, Position::from_word(0x70)))]
        };
        for (i, key) in keys.iter().enumerate() {
            for slot in slots(key).into_iter().flatten() {
                let [head, ..] = slot.words();
                assert!(Heads::of(key, 9).may_be(slot.shape(), head), "{key:?}");
                assert!(slot.position().is_none() || !Heads::of(key, 8).may_be(slot.shape(), head));
                for other in keys.iter().skip(i / 2 * 2 + 2).filter(|_| slot.position().is_none()) {
                    let is_alike = key.len() == other.len() && key[..7.min(key.len())] == other[..7.min(key.len())];
                    assert!(is_alike || !Heads::of(other, 9).may_be(slot.shape(), head), "{key:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn only_small_items_fit() {
        for key_bytes in 0..=30 {
            for value_bytes in 0..=30 {
                let (key, value) = (vec![7; key_bytes], vec![9; value_bytes]);
                let fits = value_bytes <= 15 && key_bytes + value_bytes <= 26 || key_bytes == 16 && value_bytes <= 11;
                let slot = Slot::whole(&key, &value);
                assert_eq!(slot.is_some(), fits, "{key_bytes} {value_bytes}");
                let Some(slot) = slot else { continue };
                assert!(slot.is_intact() && slot.position().is_none());
                assert_eq!(slot.content(), Content::Whole { key: &key, value: &value });
            }
        }
        let position = Position::from_word(0x1234_5670);
        let slot = Slot::of_item(5, position);
        assert_eq!(slot.content(), Content::Item { signature: 5, position });
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let slot = Slot::whole(b"a key", b"a value").unwrap();
        for bit in 0..SLOT_BYTES * 8 {
            let mut words = slot.words();
            words[bit / 64] ^= 1 << (bit % 64);
            assert!(!Slot::from_words(slot.shape(), words).is_intact());
        }
        assert!((0..6).all(|bit| !Slot::from_words(slot.shape() ^ 1 << bit, slot.words()).is_intact()));
    }
}
