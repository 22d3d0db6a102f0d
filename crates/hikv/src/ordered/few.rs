//! A few items from one end of a range, without an ordered index.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};

use engine::OrderState;

use super::bounds::Bounds;
use super::{Item, Ordered};
use crate::{Error, Store};

/// Larger counts use the ordered index. This many items fit in a tree in the caches, and each item of the store is
/// compared with the last of them, which is cheaper than sorting for any number of items.
const COUNT_MAX: usize = 1_000;

/// Returns the keys that begin with `prefix` as a range.
#[must_use]
pub fn prefix_range(prefix: impl AsRef<[u8]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    Bounds::of_prefix(prefix.as_ref()).into_ends()
}

impl Store {
    /// Returns the first `count` items of `range` in key order. Uses the ordered index if it is built or `count`
    /// exceeds 1,000. Otherwise one pass over all items finds them, which takes a fraction of the time of ordering the
    /// keys, and needs no [`crate::Options::ordered`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], "value")?; }
    /// let keys = |items: Vec<hikv::Item>| items.into_iter().map(|(key, _)| key[0]).collect::<Vec<_>>();
    /// assert_eq!(keys(store.first_items([17u8].., 3)?), [17, 18, 19]);
    /// assert_eq!(keys(store.last_items::<&[u8]>(.., 2)?), [99, 98]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the pass finds a damaged item; otherwise as for [`Store::ordered`] and [`Store::get`].
    pub fn first_items<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, count: usize) -> Result<Vec<Item>, Error> {
        let bounds = Bounds::of(&range);
        match self.order_for(count)? {
            Some(ordered) => ordered.range_within(bounds)?.take(count).collect(),
            None => self.pass(&bounds, count, false),
        }
    }

    /// Returns the last `count` items of `range`, greatest key first; see [`Store::first_items`].
    ///
    /// # Errors
    /// As for [`Store::first_items`].
    pub fn last_items<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, count: usize) -> Result<Vec<Item>, Error> {
        let bounds = Bounds::of(&range);
        match self.order_for(count)? {
            Some(ordered) => ordered.range_within(bounds)?.rev().take(count).collect(),
            None => self.pass(&bounds, count, true),
        }
    }

    /// Returns the ordered view if it is the better way to find that many items.
    fn order_for(&self, count: usize) -> Result<Option<Ordered>, Error> {
        let is_ready =
            || Ok::<_, Error>(self.engine()?.stats().order.is_some_and(|order| order.state == OrderState::Ready));
        if count > COUNT_MAX || is_ready()? { self.ordered().map(Some) } else { Ok(None) }
    }

    /// Visits all items and keeps the best. A key that is visited twice, because it was written during the pass, keeps
    /// its last value.
    fn pass(&self, bounds: &Bounds, count: usize, is_backward: bool) -> Result<Vec<Item>, Error> {
        let mut kept = BTreeMap::new();
        if count == 0 || bounds.is_empty() {
            return Ok(Vec::new());
        }
        self.for_each(|key, value| {
            let worst = if is_backward { kept.first_key_value() } else { kept.last_key_value() };
            let is_better =
                |worst: &Vec<u8>| if is_backward { key >= worst.as_slice() } else { key <= worst.as_slice() };
            let is_wanted = kept.len() < count || worst.is_some_and(|(worst, _)| is_better(worst));
            if is_wanted && bounds.contains(key) {
                kept.insert(key.to_vec(), value.to_vec());
                if kept.len() > count {
                    let _ = if is_backward { kept.pop_first() } else { kept.pop_last() };
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(if is_backward { kept.into_iter().rev().collect() } else { kept.into_iter().collect() })
    }
}
