//! A tree's part of the store's keys.

use std::ops::Bound;

use crate::tree_id::{MARK, MARKED_MAX, Prefix, TreeId, is_marked};

/// A range of stored keys, owned.
pub type StoredRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const WHOLE: u64 = u64::MAX;
const NAMELESS: u64 = u64::MAX - 1;

/// A mapping from a tree's keys to stored keys, which keeps their order. No two trees map to the same stored key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Every stored key, under its own name: a store without a catalog.
    Whole,
    /// The nameless tree of a store with a catalog.
    Nameless,
    /// A tree whose stored keys have a prefix.
    Prefixed(Prefix),
}

impl Space {
    /// Returns the space of a tree, in a store with a catalog.
    #[must_use]
    pub fn of(id: TreeId) -> Space {
        if id == TreeId::NAMELESS { Space::Nameless } else { Space::Prefixed(Prefix::of(id)) }
    }

    /// Returns the tree of the space; `None` for [`Space::Whole`].
    #[must_use]
    pub fn tree(self) -> Option<TreeId> {
        match self {
            Space::Whole => None,
            Space::Nameless => Some(TreeId::NAMELESS),
            Space::Prefixed(prefix) => TreeId::of_stored(prefix.as_bytes()),
        }
    }

    /// Returns the space as one word, which is not 0.
    #[must_use]
    pub fn to_word(self) -> u64 {
        match self {
            Space::Whole => WHOLE,
            Space::Nameless => NAMELESS,
            Space::Prefixed(prefix) => prefix.to_word(),
        }
    }

    /// Returns the space of a word that [`Space::to_word`] returned; `None` for 0.
    #[inline]
    #[must_use]
    pub fn of_word(word: u64) -> Option<Space> {
        match word {
            0 => None,
            WHOLE => Some(Space::Whole),
            NAMELESS => Some(Space::Nameless),
            word => Some(Space::Prefixed(Prefix::of_word(word))),
        }
    }

    /// Returns what precedes the stored form of this key.
    #[inline]
    fn prefix_of(&self, key: &[u8]) -> Option<Prefix> {
        match *self {
            Space::Prefixed(prefix) => Some(prefix),
            Space::Nameless if is_marked(key) => Some(Prefix::ESCAPED),
            Space::Nameless | Space::Whole => None,
        }
    }

    /// Calls `f` with the stored form of `key`.
    #[inline]
    pub fn with_stored<R>(self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        match self.prefix_of(key) {
            None => f(key),
            Some(prefix) => prefix.join(key, f),
        }
    }

    /// Returns the tree's key whose stored form this is, or `None` if it belongs to another tree or to none.
    #[inline]
    #[must_use]
    pub fn key_of(self, stored: &[u8]) -> Option<&[u8]> {
        match self {
            Space::Whole => Some(stored),
            Space::Prefixed(prefix) => stored.strip_prefix(prefix.as_bytes()),
            Space::Nameless if !is_marked(stored) => Some(stored),
            Space::Nameless => stored.strip_prefix(Prefix::ESCAPED.as_bytes()).filter(|key| is_marked(key)),
        }
    }

    /// Returns the stored keys of the tree's keys from `low` to `high`: at most two ranges, in order.
    #[must_use]
    pub fn ranges(self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<StoredRange> {
        let stored = |bound: Bound<&[u8]>| bound.map(|key| self.with_stored(key, <[u8]>::to_vec));
        let (low, high) = (stored(low), stored(high));
        match self {
            Space::Whole => vec![(low, high)],
            Space::Prefixed(prefix) => {
                vec![(or(low, Bound::Included(prefix.as_bytes().to_vec())), or(high, Bound::Excluded(prefix.end())))]
            }
            // Other trees lie between.
            Space::Nameless => {
                let (end, start) = (vec![MARK, 1], vec![MARK, MARKED_MAX + 1]);
                let below = match &high {
                    Bound::Included(high) | Bound::Excluded(high) if *high < end => None,
                    _ => Some(Bound::Excluded(end)),
                };
                let above = match &low {
                    Bound::Included(low) | Bound::Excluded(low) if *low >= start => None,
                    _ => Some(Bound::Included(start)),
                };
                match (below, above) {
                    (None, _) | (_, None) => vec![(low, high)],
                    (Some(below), Some(above)) => vec![(low, below), (above, high)],
                }
            }
        }
    }
}

fn or(bound: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if bound == Bound::Unbounded { other } else { bound }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::RangeBounds;

    use super::*;

    fn keys() -> BTreeSet<Vec<u8>> {
        let mut keys: BTreeSet<_> = [vec![], b"a".to_vec(), vec![0xFE], vec![0xFF], vec![0xFF, 0xFF]].into();
        for byte in 0..=0x22 {
            keys.extend([vec![byte], vec![0xFF, byte], vec![0xFF, byte, 0xFF, byte], vec![0xFF, 0x11, 0, byte]]);
        }
        keys
    }

    fn spaces() -> impl Iterator<Item = Space> {
        [0, 1, 15, 16, 17, 0xFF, 0x100, 0xFFFF, 0x1_0000].into_iter().map(|number| Space::of(TreeId::new(number)))
    }

    #[test]
    fn word_stands_for_its_space() {
        for space in spaces().chain([Space::Whole]) {
            assert_eq!(Space::of_word(space.to_word()), Some(space));
            assert_eq!(space.tree().map_or(Space::Whole, Space::of), space);
        }
        assert_eq!(Space::of_word(0), None);
    }

    #[test]
    fn no_two_trees_share_a_stored_key() {
        let mut seen = BTreeSet::new();
        for space in spaces() {
            let mut last = None;
            for key in keys() {
                let stored = space.with_stored(&key, <[u8]>::to_vec);
                for other in spaces() {
                    assert_eq!(other.key_of(&stored), (other == space).then_some(&key[..]), "{space:?} {key:x?}");
                }
                assert!(last.as_ref().is_none_or(|last| *last < stored), "the order of keys is kept");
                assert!(seen.insert(stored.clone()));
                last = Some(stored);
            }
        }
    }

    #[test]
    fn ranges_are_those_of_the_trees_keys() {
        let stored: Vec<Vec<u8>> = {
            let of = |space: Space| keys().into_iter().map(move |key| space.with_stored(&key, <[u8]>::to_vec));
            let catalog = [vec![0xFF, 0x10, 0], vec![0xFF, 0x10, 1, 7]];
            spaces().flat_map(of).chain(catalog).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let bounds = || {
            let of = |key: Vec<u8>| [Bound::Included(key.clone()), Bound::Excluded(key)];
            keys().into_iter().flat_map(of).chain([Bound::Unbounded])
        };
        for space in spaces() {
            for low in bounds().step_by(5) {
                for high in bounds().step_by(7) {
                    let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                    let wanted: Vec<_> = keys().into_iter().filter(|key| within.contains(&key[..])).collect();
                    let ranges = space.ranges(within.0, within.1);
                    let found = ranges.iter().flat_map(|range| stored.iter().filter(|stored| range.contains(*stored)));
                    let found: Vec<_> = found.map(|stored| space.key_of(stored).expect("its own").to_vec()).collect();
                    assert_eq!(found, wanted, "{space:?} {low:x?} {high:x?}");
                }
            }
        }
    }
}
