//! A few items from one end of a range, without an order of all keys.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};

use engine::OrderState;

use super::bounds::Bounds;
use super::{Item, Ordered};
use crate::{Error, Store};

/// More are looked up in order. So many are kept in a tree that stays in the caches, and each item of the store is compared
/// with the last of them: that takes less than sorting, however many there are.
const COUNT_MAX: usize = 1_000;

/// The keys that begin with `prefix`, as a range.
#[must_use]
pub fn prefix_range(prefix: impl AsRef<[u8]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    Bounds::of_prefix(prefix.as_ref()).into_ends()
}

impl Store {
    /// The first `count` items of `range`, in the order of their keys. If keys are in order they are looked up, and so are more
    /// than 1,000; else one pass over all items finds them, which takes a fraction of the time that ordering takes, and needs
    /// no [`crate::Options::ordered`].
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
    /// See [`Error`]; a damaged item ends the pass.
    pub fn first_items<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, count: usize) -> Result<Vec<Item>, Error> {
        let bounds = Bounds::of(&range);
        match self.order_for(count)? {
            Some(ordered) => ordered.range_within(bounds)?.take(count).collect(),
            None => self.pass(&bounds, count, false),
        }
    }

    /// The last `count` items of `range`, the greatest key first; see [`Store::first_items`].
    ///
    /// # Errors
    /// See [`Error`]; a damaged item ends the pass.
    pub fn last_items<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, count: usize) -> Result<Vec<Item>, Error> {
        let bounds = Bounds::of(&range);
        match self.order_for(count)? {
            Some(ordered) => ordered.range_within(bounds)?.rev().take(count).collect(),
            None => self.pass(&bounds, count, true),
        }
    }

    /// The order, where so many items are best looked up there.
    fn order_for(&self, count: usize) -> Result<Option<Ordered>, Error> {
        let is_ready =
            || Ok::<_, Error>(self.engine()?.stats().order.is_some_and(|order| order.state == OrderState::Ready));
        if count > COUNT_MAX || is_ready()? { self.ordered().map(Some) } else { Ok(None) }
    }

    /// Goes past all items and keeps the best. A key that is met twice, since it was written meanwhile, is kept as it was met
    /// last.
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
