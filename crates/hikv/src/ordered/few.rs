//! A few items from one end of a range, without an ordered index.

use std::collections::BTreeMap;
use std::ops::Bound;

use engine::OrderState;

use super::bounds::Bounds;
use super::{Item, Ordered};
use crate::{Error, Tree};

/// Returns the keys that begin with `prefix` as a range.
#[must_use]
pub fn prefix_range(prefix: impl AsRef<[u8]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    Bounds::of_prefix(prefix.as_ref()).into_ends()
}

/// Larger counts use the ordered index. This many items fit in a tree in the caches, and each item of the store is
/// compared with the last of them, which is cheaper than sorting for any number of items.
const COUNT_MAX: usize = 1_000;

/// Returns the ordered view if it is the better way to find that many items.
pub(crate) fn order_for(tree: &Tree, count: usize) -> Result<Option<Ordered>, Error> {
    let is_ready =
        || Ok::<_, Error>(tree.inner().engine()?.stats().order.is_some_and(|order| order.state == OrderState::Ready));
    if count > COUNT_MAX || is_ready()? { tree.ordered().map(Some) } else { Ok(None) }
}

/// Visits all items and keeps the best. A key that is visited twice, because it was written during the pass, keeps
/// its last value.
pub(crate) fn pass(tree: &Tree, bounds: &Bounds, count: usize, is_backward: bool) -> Result<Vec<Item>, Error> {
    let mut kept = BTreeMap::new();
    if count == 0 || bounds.is_empty() {
        return Ok(Vec::new());
    }
    tree.for_each(|key, value| {
        let worst = if is_backward { kept.first_key_value() } else { kept.last_key_value() };
        let is_better = |worst: &Vec<u8>| if is_backward { key >= worst.as_slice() } else { key <= worst.as_slice() };
        let is_wanted = kept.len() < count || worst.is_some_and(|(worst, _)| is_better(worst));
        if is_wanted && bounds.contains(key) {
            kept.insert(key.to_vec(), value.to_vec());
            if kept.len() > count {
                let _ = if is_backward { kept.pop_first() } else { kept.pop_last() };
            }
        }
    })?;
    Ok(if is_backward { kept.into_iter().rev().collect() } else { kept.into_iter().collect() })
}
