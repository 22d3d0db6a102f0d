//! Verifies the tree: structure, order, fences, heads and sibling links.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use super::Keys;
use super::descent::RootWord;
use super::layout::{Inner, Leaf, UNUSED_HEAD};
use super::target::{common_bytes, head_of};
use crate::Position;

/// Damage that [`super::BPlusTree::check`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeDamage {
    /// A description of the damage.
    pub what: &'static str,
    /// The item at which it was found, if there is one.
    pub position: Option<Position>,
}

/// The separators on either side of a node.
#[derive(Clone, Copy)]
struct Fences<'f> {
    low: Option<&'f [u8]>,
    high: Option<&'f [u8]>,
}

impl Fences<'_> {
    fn hold(&self, key: &[u8]) -> bool {
        self.low.is_none_or(|low| low <= key) && self.high.is_none_or(|high| key < high)
    }

    fn shared_bytes(&self) -> usize {
        self.low.zip(self.high).map_or(0, |(low, high)| common_bytes(low, high))
    }
}

/// A check of a tree.
pub(super) struct Checker<'c, K> {
    root_word: &'c RootWord,
    keys: &'c K,
    damaged: &'c mut dyn FnMut(TreeDamage),
    /// The leaf to the left of the next one.
    last_leaf: *const Leaf,
    item_count: u64,
}

impl<'c, K: Keys> Checker<'c, K> {
    /// Checks a tree of `item_count` items.
    pub(super) fn check(root_word: &'c RootWord, item_count: u64, keys: &'c K, damaged: &'c mut dyn FnMut(TreeDamage)) {
        let _pin = epoch::pin();
        let mut checker = Checker { root_word, keys, damaged, last_leaf: ptr::null(), item_count: 0 };
        let root = root_word.root();
        checker.check_node(root.node(), root.height(), Fences { low: None, high: None });
        checker.check_end(item_count);
    }

    fn expect(&mut self, is_right: bool, what: &'static str, position: Option<Position>) {
        if !is_right {
            (self.damaged)(TreeDamage { what, position });
        }
    }

    fn check_node(&mut self, node: *mut u8, level: usize, fences: Fences<'_>) {
        if node.is_null() {
            self.expect(false, "a child is missing", None);
        } else if level == 0 {
            self.check_leaf(self.root_word.leaf(node), fences);
        } else {
            self.check_inner(self.root_word.inner(node), level, fences);
        }
    }

    fn check_inner(&mut self, inner: &Inner, level: usize, fences: Fences<'_>) {
        self.expect(inner.version.try_read().is_some(), "an inner node is locked or obsolete", None);
        let separators: Vec<Vec<u8>> = inner.contents().0.iter().map(|separator| separator.to_vec()).collect();
        self.expect(separators.is_sorted_by(|one, next| one < next), "separators do not ascend", None);
        for (separator, head) in separators.iter().zip(&inner.heads) {
            self.expect(fences.hold(separator), "a separator is outside of its node's fences", None);
            self.expect(
                separator.starts_with(&separators[0][..inner.prefix_bytes()]),
                "a separator lacks the prefix",
                None,
            );
            let is_right = head.load(Relaxed) == head_of(separator, inner.prefix_bytes());
            self.expect(is_right, "a separator's head does not match it", None);
        }
        let unused = inner.heads[separators.len()..].iter().all(|head| head.load(Relaxed) == UNUSED_HEAD);
        self.expect(unused, "an unused head is set", None);
        for index in 0..=separators.len() {
            let low = index.checked_sub(1).map_or(fences.low, |left| Some(&separators[left]));
            let high = separators.get(index).map_or(fences.high, |right| Some(right));
            self.check_node(inner.child(index), level - 1, Fences { low, high });
        }
    }

    fn check_leaf(&mut self, leaf: &Leaf, fences: Fences<'_>) {
        self.expect(leaf.version.try_read().is_some(), "a leaf is locked or obsolete", None);
        self.expect(
            leaf.prefix_bytes() <= fences.shared_bytes(),
            "a leaf's prefix is longer than its fences share",
            None,
        );
        // SAFETY: null, or a leaf that was just visited.
        let is_linked = unsafe { self.last_leaf.as_ref() }.is_none_or(|last| ptr::eq(last.next.load(Relaxed), leaf));
        self.expect(is_linked, "a leaf is not linked from the one to its left", None);
        self.last_leaf = leaf;
        let unused = leaf.heads[leaf.count()..].iter().all(|head| head.load(Relaxed) == UNUSED_HEAD);
        self.expect(unused, "an unused head is set", None);
        self.item_count += leaf.count() as u64;
        self.check_entries(leaf, fences);
    }

    fn check_entries(&mut self, leaf: &Leaf, fences: Fences<'_>) {
        let mut last: Option<&[u8]> = None;
        for entry in leaf.entries() {
            let position = Some(entry.position);
            let Ok(key) = self.keys.key(entry.position) else {
                self.expect(false, "an item's key cannot be read", position);
                continue;
            };
            self.expect(last.is_none_or(|last| last < key), "keys do not ascend", position);
            self.expect(fences.hold(key), "a key is outside of its leaf's fences", position);
            self.expect(entry.head == head_of(key, leaf.prefix_bytes()), "a head does not match its key", position);
            last = Some(key);
        }
    }

    fn check_end(&mut self, item_count: u64) {
        // SAFETY: null, or a leaf that was visited.
        let is_last = unsafe { self.last_leaf.as_ref() }.is_none_or(|last| last.next.load(Relaxed).is_null());
        self.expect(is_last, "a leaf follows the last one", None);
        self.expect(self.item_count == item_count, "items are miscounted", None);
    }
}
