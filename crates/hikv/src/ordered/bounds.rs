//! The ends of a range.

use std::ops::{Bound, RangeBounds};

use catalog::Space;
use engine::Direction;

/// A range of keys, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
}

impl Bounds {
    /// The range of all keys.
    pub(crate) const ALL: Bounds = Bounds { low: Bound::Unbounded, high: Bound::Unbounded };

    pub(crate) fn of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Bounds {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        Bounds { low: owned(range.start_bound()), high: owned(range.end_bound()) }
    }

    /// Returns the range between two ends.
    pub(crate) fn between(low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Bounds {
        Bounds { low, high }
    }

    /// Returns the range of the keys that begin with `prefix`.
    pub(crate) fn of_prefix(prefix: &[u8]) -> Bounds {
        Bounds {
            low: Bound::Included(prefix.to_vec()),
            high: successor(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        }
    }

    /// Returns the ranges of stored keys that hold this range of a tree's keys, in order.
    pub(super) fn stored(&self, space: Space) -> Vec<Bounds> {
        let ranges = space.ranges(self.low(), self.high()).into_iter();
        ranges.map(|(low, high)| Bounds { low, high }).filter(|bounds| !bounds.is_empty()).collect()
    }

    pub(super) fn into_ends(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (self.low, self.high)
    }

    pub(crate) fn low(&self) -> Bound<&[u8]> {
        self.low.as_ref().map(Vec::as_slice)
    }

    pub(crate) fn high(&self) -> Bound<&[u8]> {
        self.high.as_ref().map(Vec::as_slice)
    }

    /// Returns true if no key can be in the range.
    pub(crate) fn is_empty(&self) -> bool {
        match (self.low(), self.high()) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
            _ => false,
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        (self.low(), self.high()).contains(key)
    }

    /// Removes the keys up to and including `key`.
    pub(crate) fn raise(&mut self, key: &[u8]) {
        self.low = Bound::Excluded(key.to_vec());
    }

    /// Returns the range from `from` on, in a direction.
    pub(super) fn from(from: Bound<&[u8]>, direction: Direction) -> Bounds {
        let from = from.map(<[u8]>::to_vec);
        match direction {
            Direction::Forward => Bounds { low: from, high: Bound::Unbounded },
            Direction::Backward => Bounds { low: Bound::Unbounded, high: from },
        }
    }

    /// Returns the bound at which a scan begins.
    pub(crate) fn start(&self, direction: Direction) -> Bound<&[u8]> {
        if direction == Direction::Forward { self.low() } else { self.high() }
    }

    /// Removes the keys from `key` on.
    pub(crate) fn lower(&mut self, key: &[u8]) {
        self.high = Bound::Excluded(key.to_vec());
    }
}

/// Returns the least key above all keys that begin with `prefix`.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.len() - prefix.iter().rev().take_while(|&&byte| byte == u8::MAX).count();
    let mut successor = prefix[..kept].to_vec();
    *successor.last_mut()? += 1;
    Some(successor)
}
