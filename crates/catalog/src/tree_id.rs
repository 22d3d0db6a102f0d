//! The number of a tree, and the prefix of its stored keys.

use std::fmt;

/// The first byte of every stored key with a prefix. No UTF-8 text contains it.
pub use engine::MARK;
/// The greatest second byte of a stored key with a prefix. Those not in use are reserved.
pub(crate) const MARKED_MAX: u8 = 0x1F;
/// The second byte of nameless keys that look marked.
pub(crate) const ESCAPE: u8 = 0;
/// The second byte of the catalog's keys.
pub(crate) const CATALOG: u8 = 0x10;
const SHORT_ID: u8 = 0x11;
const LONG_ID: u8 = 0x12;

/// Returns true if a stored key like this would have a prefix.
#[inline(always)]
#[must_use]
pub fn is_marked(key: &[u8]) -> bool {
    matches!(key, [MARK, second, ..] if *second <= MARKED_MAX)
}

/// The number of a tree in its store. No number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TreeId(u32);

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TreeId {
    /// The tree without a name.
    pub const NAMELESS: TreeId = TreeId(0);
    /// The first number that a new tree can get. The numbers from 1 belong to the databases of the server.
    pub const FIRST: TreeId = TreeId(16);

    /// Returns the tree of this number.
    #[must_use]
    pub const fn new(number: u32) -> TreeId {
        TreeId(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the tree that owns a stored key, or `None` for keys of the catalog and reserved ones.
    #[must_use]
    pub fn of_stored(stored: &[u8]) -> Option<TreeId> {
        match *stored {
            [MARK, ESCAPE, ref key @ ..] => is_marked(key).then_some(TreeId::NAMELESS),
            [MARK, id, ..] if id < CATALOG => Some(TreeId(u32::from(id))),
            [MARK, SHORT_ID, a, b, ..] => Some(TreeId(u32::from_be_bytes([0, 0, a, b]))).filter(|id| id.0 >= 16),
            [MARK, LONG_ID, a, b, c, d, ..] => {
                Some(TreeId(u32::from_be_bytes([a, b, c, d]))).filter(|id| id.0 > u32::from(u16::MAX))
            }
            _ => (!is_marked(stored)).then_some(TreeId::NAMELESS),
        }
    }
}

/// The bytes before each stored key of a tree: 2, 4 or 6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    bytes: [u8; 8],
    len: usize,
}

impl Prefix {
    /// The prefix of nameless keys that look marked.
    pub(crate) const ESCAPED: Prefix = Prefix::of_bytes([MARK, ESCAPE]);

    /// Returns the prefix of a tree that has a name.
    ///
    /// # Panics
    /// For [`TreeId::NAMELESS`].
    #[must_use]
    pub fn of(id: TreeId) -> Prefix {
        assert_ne!(id, TreeId::NAMELESS, "the nameless tree has no prefix");
        let [a, b, c, d] = id.0.to_be_bytes();
        match id.0 {
            0..16 => Prefix::of_bytes([MARK, d]),
            16..0x1_0000 => Prefix::of_bytes([MARK, SHORT_ID, c, d]),
            _ => Prefix::of_bytes([MARK, LONG_ID, a, b, c, d]),
        }
    }

    const fn of_bytes<const N: usize>(prefix: [u8; N]) -> Prefix {
        let mut bytes = [0; 8];
        let mut at = 0;
        while at < N {
            bytes[at] = prefix[at];
            at += 1;
        }
        Prefix { bytes, len: N }
    }

    /// Returns the bytes, and their number in the highest byte.
    pub(crate) fn to_word(self) -> u64 {
        u64::from_le_bytes(self.bytes) | (self.len as u64) << 56
    }

    #[inline]
    pub(crate) fn of_word(word: u64) -> Prefix {
        Prefix { bytes: (word & (u64::MAX >> 8)).to_le_bytes(), len: (word >> 56) as usize }
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Calls `f` with the stored form of a key. A usual key is joined on the stack.
    #[inline]
    pub(crate) fn join<R>(self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        const STACK_BYTES: usize = 128;
        let len = self.len + key.len();
        if len > STACK_BYTES {
            return f(&[self.as_bytes(), key].concat());
        }
        let mut joined = [0; STACK_BYTES];
        joined[..8].copy_from_slice(&self.bytes);
        joined[self.len..len].copy_from_slice(key);
        f(&joined[..len])
    }

    /// Returns the least bytes above all keys that begin with the prefix.
    pub(crate) fn end(self) -> Vec<u8> {
        let mut end = self.as_bytes().to_vec();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        // The first byte is followed by a smaller one, so there is a last byte to raise.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_trees_belong_to_them() {
        for number in [1, 15, 16, 255, 256, 0xFFFF, 0x1_0000, 0x1FFFF, u32::MAX] {
            let id = TreeId::new(number);
            let prefix = Prefix::of(id);
            for key in [&b""[..], b"k", &[0xFF, 0x11], &[7; 300]] {
                prefix.join(key, |stored| {
                    assert_eq!(stored, [prefix.as_bytes(), key].concat());
                    assert_eq!(TreeId::of_stored(stored), Some(id), "{number}");
                    assert!(stored < &prefix.end()[..] && is_marked(stored));
                });
            }
        }
    }

    #[test]
    fn keys_of_any_length_are_joined() {
        let bytes: Vec<u8> = (0..200).collect();
        for prefix in [Prefix::ESCAPED, Prefix::of(TreeId::new(16)), Prefix::of(TreeId::new(u32::MAX))] {
            for key in (0..bytes.len()).map(|len| &bytes[..len]) {
                prefix.join(key, |stored| assert_eq!(stored, [prefix.as_bytes(), key].concat()));
            }
        }
    }

    #[test]
    fn other_keys_belong_to_no_named_tree() {
        let nameless = [&b""[..], b"k", &[0xFF], &[0xFF, 0x20], &[0xFF, 0xFF], &[0xFF, 0, 0xFF, 0x11]];
        assert!(nameless.iter().all(|stored| TreeId::of_stored(stored) == Some(TreeId::NAMELESS)));
        let neither =
            [&[0xFF, 0][..], &[0xFF, 0, 7], &[0xFF, 0x10], &[0xFF, 0x10, 0], &[0xFF, 0x11, 0, 3, 9], &[0xFF, 0x1F]];
        assert!(neither.iter().all(|stored| TreeId::of_stored(stored).is_none()));
        assert_eq!(TreeId::of_stored(&[0xFF, 0x12, 0, 0, 0, 17]), None);
    }
}
