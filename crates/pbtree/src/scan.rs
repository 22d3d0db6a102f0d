//! Scans: a leaf at a time. Between two leaves nothing is held: the next page begins where the separators say that the last one
//! ended. Every key is shown as it was at some time during the scan, in order, at most once.

use core::ops::Bound;

use pmem::{Dram, Medium};

use crate::Error;
use crate::locks::{Mode, Patience};
use crate::node::Target;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards greater keys.
    Forward,
    /// Towards lesser ones.
    Backward,
}

/// Is given what a leaf has. Runs under locks, so it copies and does nothing else.
pub trait Page {
    /// A key and its value, in the scan's order.
    fn item(&mut self, key: &[u8], value: &Value<'_>);

    /// Where this page ends: it has keys below `fence` only, going forward, and none below it, going backward. The last call
    /// counts. The next page is from `Included(fence)` going forward, from `Excluded(fence)` going backward.
    fn ends_at(&mut self, fence: &[u8]);
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Gives `page` the keys of one leaf, from `from` on; it may have none. False if that was the last leaf. What was given
    /// is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn scan(&self, from: Bound<&[u8]>, direction: Direction, page: &mut dyn Page) -> Result<bool, Error> {
        let mut has_more = false;
        let leaf = self.descend(target(from, direction), (0, Mode::Shared), Patience::Wait, |inner, child| {
            let fence = match direction {
                Direction::Forward => (child < inner.meta.count).then_some(child),
                Direction::Backward => child.checked_sub(1),
            };
            if let Some(i) = fence {
                page.ends_at(inner.node.key(i)?);
                has_more = true;
            }
            Ok(())
        })?;
        for turn in 0..leaf.meta.count {
            let i = if direction == Direction::Forward { turn } else { leaf.meta.count - 1 - turn };
            if leaf.node.value_word(i) != 0
                && let key = leaf.node.key(i)?
                && is_within(key, from, direction)
                && let Some(value) = self.value_of(&leaf, i)?
            {
                page.item(key, &value);
            }
        }
        self.settled(leaf)?;
        Ok(has_more)
    }
}

fn target(from: Bound<&[u8]>, direction: Direction) -> Target<'_> {
    match (from, direction) {
        (Bound::Unbounded, Direction::Forward) => Target::First,
        (Bound::Unbounded, Direction::Backward) => Target::Last,
        (Bound::Excluded(key), Direction::Backward) => Target::Before(key),
        (Bound::Included(key) | Bound::Excluded(key), _) => Target::At(key),
    }
}

fn is_within(key: &[u8], from: Bound<&[u8]>, direction: Direction) -> bool {
    match (from, direction) {
        (Bound::Unbounded, _) => true,
        (Bound::Included(from), Direction::Forward) => key >= from,
        (Bound::Excluded(from), Direction::Forward) => key > from,
        (Bound::Included(from), Direction::Backward) => key <= from,
        (Bound::Excluded(from), Direction::Backward) => key < from,
    }
}
