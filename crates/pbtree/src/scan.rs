//! Scans: a leaf at a time. Between two leaves nothing is held: the next page begins where the separators say that the last one
//! ended. Every key is shown as it was at some time during the scan, in order, at most once.

use core::ops::{Bound, Range};

use pmem::{Dram, Medium};

use crate::Error;
use crate::descent::Reached;
use crate::key;
use crate::locks::{Mode, Patience};
use crate::node::Target;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;

/// Values that are on their way to the cache while one is read: about as many lines as a processor waits for at once.
const VALUES_AHEAD: usize = 8;

/// Of each of them the first lines. The processor sees by itself what comes behind; what takes long is a page that it has not met lately.
const SCANNED_LINES_AHEAD: u64 = 2;

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
    pub fn scan(&self, from: Bound<&[u8]>, direction: Direction, page: &mut impl Page) -> Result<bool, Error> {
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
        self.show_pairs(&leaf, from, direction, page)?;
        self.settled(leaf)?;
        Ok(has_more)
    }

    /// Shows what of a leaf is within the bound. Keys lie anywhere, and so do values: all keys are asked for at once, and each value
    /// some turns before it is read.
    fn show_pairs(
        &self,
        leaf: &Reached<'_, M>,
        from: Bound<&[u8]>,
        direction: Direction,
        page: &mut impl Page,
    ) -> Result<(), Error> {
        (0..leaf.meta.count).for_each(|i| leaf.node.prefetch_key(i));
        let within = pairs_within(leaf, from, direction)?;
        let count = within.len();
        let pair = |turn| if direction == Direction::Forward { within.start + turn } else { within.end - 1 - turn };
        (0..count.min(VALUES_AHEAD)).for_each(|turn| leaf.node.prefetch_value_start(pair(turn), SCANNED_LINES_AHEAD));
        for turn in 0..count {
            if turn + VALUES_AHEAD < count {
                leaf.node.prefetch_value_start(pair(turn + VALUES_AHEAD), SCANNED_LINES_AHEAD);
            }
            let (key_word, value_word) = leaf.node.pair(pair(turn));
            if value_word == 0 {
                continue;
            }
            // SAFETY: the leaf is locked: what its words name is neither changed nor freed.
            match unsafe { (key::in_slot(self.medium(), key_word), Value::in_slot(self.medium(), value_word)) } {
                (Some(key), Some(value)) => page.item(key, &value),
                _ => self.show_any(leaf, pair(turn), page)?,
            }
        }
        Ok(())
    }

    /// Shows a pair that does not lie in two slots, expires, or is damaged.
    #[cold]
    #[inline(never)]
    fn show_any(&self, leaf: &Reached<'_, M>, i: usize, page: &mut impl Page) -> Result<(), Error> {
        if let Some(value) = self.value_of(leaf, i)? {
            page.item(leaf.node.key(i)?, &value);
        }
        Ok(())
    }
}

/// Which of a leaf's pairs lie within the bound. A page that begins at a separator has all of them, and one look tells.
fn pairs_within<M: Medium>(
    leaf: &Reached<'_, M>,
    from: Bound<&[u8]>,
    direction: Direction,
) -> Result<Range<usize>, Error> {
    let (node, count) = (leaf.node, leaf.meta.count);
    let is_before = |key: &[u8]| match (from, direction) {
        (Bound::Unbounded, _) => direction == Direction::Backward,
        (Bound::Included(from), Direction::Forward) | (Bound::Excluded(from), Direction::Backward) => key < from,
        (Bound::Excluded(from), Direction::Forward) | (Bound::Included(from), Direction::Backward) => key <= from,
    };
    match direction {
        _ if count == 0 => Ok(0..0),
        Direction::Forward if !is_before(node.key(0)?) => Ok(0..count),
        Direction::Backward if is_before(node.key(count - 1)?) => Ok(0..count),
        Direction::Forward => Ok(node.partition(0..count, is_before)?..count),
        Direction::Backward => Ok(0..node.partition(0..count, is_before)?),
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
