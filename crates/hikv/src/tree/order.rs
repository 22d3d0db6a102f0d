//! Reading many items: in key order, or in no order.

use std::ops::RangeBounds;

use engine::Early;

use super::{Iter, IterKeys, Tree};
use crate::handles::Kind;
use crate::ordered::{Bounds, Item, Ordered, order_for, pass, want_order};
use crate::read_view::walk;
use crate::{CallbackReply, Cursors, Error, Range};

impl Tree {
    /// Calls `each` with every item, in no order, until it returns `Break`; returns the value of the `Break`. Not a
    /// snapshot: concurrent writes may or may not be seen.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged item; otherwise as for [`Tree::get`].
    pub fn for_each<R: CallbackReply>(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> R,
    ) -> Result<Option<R::Break>, Error> {
        walk(
            self.keyspace.space()?,
            |key, value, _| each(key, value),
            |cursor, show| self.inner().engine()?.walk(cursor, show),
        )
    }

    /// Returns an iterator over all items, in no order. Not a snapshot: a key that is present all the time is returned
    /// exactly once, and concurrent writes may or may not be seen.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let mut items = store.iter().collect::<Result<Vec<_>, _>>()?;
    /// items.sort();
    /// assert_eq!(items[1], (b"two".to_vec(), b"zwei".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter {
        Iter::new(self.held_by(Kind::Range))
    }

    /// Returns an iterator over all keys, in no order, which copies no value; see [`Tree::iter`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("one", "eins")?;
    /// assert_eq!(store.keys().collect::<Result<Vec<_>, _>>()?, [b"one"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn keys(&self) -> IterKeys {
        IterKeys::new(self.held_by(Kind::Range))
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
        want_order(self)?;
        Ok(Ordered::new(self.held_by(Kind::Ordered), Early::Wait))
    }

    /// Returns an iterator over the items of `range` in key order. `rev` and `next_back` iterate from the end. The
    /// first call starts building the ordered index, and waits for it: [`Tree::ordered`].
    ///
    /// # Errors
    /// As for [`Tree::ordered`] and [`Tree::get`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Range, Error> {
        self.ordered()?.range(range)
    }

    /// Returns an iterator over the items whose keys begin with `prefix`, in key order; see [`Tree::range`].
    ///
    /// # Errors
    /// As for [`Tree::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range, Error> {
        self.ordered()?.prefix(prefix)
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
