//! Reading many items: in key order, or in no order.

use std::ops::{ControlFlow, RangeBounds};

use engine::{Cursor, Early, OrderState};

use super::Tree;
use crate::Error;
use crate::handles::Kind;
use crate::ordered::{Bounds, Item, Ordered, pass};

/// Larger counts use the ordered index. This many items fit in a tree in the caches, and each item of the store is
/// compared with the last of them, which is cheaper than sorting for any number of items.
const COUNT_MAX: usize = 1_000;

impl Tree {
    /// Calls `each` with every item, in no order, until it returns `Break`. Not a snapshot: concurrent writes may or
    /// may not be seen.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged item; otherwise as for [`Tree::get`].
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
        while !cursor.is_done() && flow.is_continue() {
            cursor = self.engine()?.walk(cursor, &mut |key, value, _| {
                if flow.is_continue() {
                    flow = each(key, value);
                }
            })?;
        }
        Ok(())
    }

    /// Calls `each` with the items of the next part of the store, at most about a thousand, in no order, and returns
    /// the next cursor. 0 means both the beginning and the end.
    ///
    /// A cursor stays valid while the store grows and after it is opened again. A key that exists during the entire
    /// walk is visited exactly once. Any other number is harmless. Engines without numbered walks
    /// ([`crate::Features::numbered_walk`]) keep the latest 4,096 cursors until the store is closed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], "value")?; }
    /// let (mut at, mut count) = (0, 0);
    /// loop {
    ///     at = store.walk(at, |_key, _value| count += 1)?;
    ///     if at == 0 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(count, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::CursorForgotten`] if the engine no longer keeps the cursor. [`Error::Corrupt`] at a damaged item.
    pub fn walk(&self, from: u64, mut each: impl FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        let engine = self.engine()?;
        let cursor = match from {
            0 => Cursor::Start,
            number if engine.features().numbered_walk => Cursor::Number(number),
            number => self.inner.walks.cursor(number).ok_or(Error::CursorForgotten { number })?,
        };
        let next = engine.walk(cursor, &mut |key, value, _| each(key, value))?;
        Ok(self.inner.walks.number(next))
    }

    /// Returns a cursor for [`Tree::walk`] at a random part of the store, chosen by `seed`.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn random_cursor(&self, seed: u64) -> Result<u64, Error> {
        Ok(self.inner.walks.number(self.engine()?.random_cursor(seed)))
    }

    /// Returns the ordered operations. The first call starts building the ordered index, in the background on all
    /// cores, while the store is in use. Operations wait until it is ready. Before the first call, no write pays for
    /// order.
    ///
    /// # Errors
    /// [`Error::NoOrder`] if the store was opened with [`crate::Options::ordered`] off; [`Error::Unsupported`] if the
    /// engine has no order. If an earlier index was lost through an error, this returns that error once.
    pub fn ordered(&self) -> Result<Ordered, Error> {
        let ordered = Ordered::new(self.held_by(Kind::Ordered), Early::Wait);
        let engine = ordered.engine()?;
        engine.request_order()?;
        // No worker is woken if the index exists or is being built.
        self.inner.ask_wanted(engine.wanted_threads());
        Ok(ordered)
    }

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
    /// [`Error::Corrupt`] if the pass finds a damaged item; otherwise as for [`Tree::ordered`] and [`Tree::get`].
    pub fn first_items<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, count: usize) -> Result<Vec<Item>, Error> {
        let bounds = Bounds::of(&range);
        match self.order_for(count)? {
            Some(ordered) => ordered.range_within(bounds)?.take(count).collect(),
            None => pass(self, &bounds, count, false),
        }
    }

    /// Returns the last `count` items of `range`, greatest key first; see [`Tree::first_items`].
    ///
    /// # Errors
    /// As for [`Tree::first_items`].
    pub fn last_items<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, count: usize) -> Result<Vec<Item>, Error> {
        let bounds = Bounds::of(&range);
        match self.order_for(count)? {
            Some(ordered) => ordered.range_within(bounds)?.rev().take(count).collect(),
            None => pass(self, &bounds, count, true),
        }
    }

    /// Returns the ordered view if it is the better way to find that many items.
    fn order_for(&self, count: usize) -> Result<Option<Ordered>, Error> {
        let is_ready =
            || Ok::<_, Error>(self.engine()?.stats().order.is_some_and(|order| order.state == OrderState::Ready));
        if count > COUNT_MAX || is_ready()? { self.ordered().map(Some) } else { Ok(None) }
    }
}
