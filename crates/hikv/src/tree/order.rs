//! Reading many items: in key order, or in no order.

use std::ops::{ControlFlow, RangeBounds};

use engine::{Cursor, Early};

use super::Tree;
use crate::handles::Kind;
use crate::ordered::{Bounds, Item, Ordered, order_for, pass};
use crate::{Cursors, Error};

impl Tree {
    /// Calls `each` with every item, in no order, until it returns `Break`. Not a snapshot: concurrent writes may or
    /// may not be seen.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged item; otherwise as for [`Tree::get`].
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
        let space = self.space()?;
        while !cursor.is_done() && flow.is_continue() {
            cursor = self.inner.engine()?.walk(cursor, &mut |stored, value, _| {
                if let Some(key) = space.key_of(stored).filter(|_| flow.is_continue()) {
                    flow = each(key, value);
                }
            })?;
        }
        Ok(())
    }

    /// Returns walks over all items by numbers, for protocols whose clients keep a number between two calls.
    #[must_use]
    pub fn cursors(&self) -> Cursors<'_> {
        Cursors::of(self)
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
        match order_for(self, count)? {
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
        match order_for(self, count)? {
            Some(ordered) => ordered.range_within(bounds)?.rev().take(count).collect(),
            None => pass(self, &bounds, count, true),
        }
    }
}
