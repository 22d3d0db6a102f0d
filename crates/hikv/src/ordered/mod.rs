//! Operations on keys in order.

mod bounds;
mod few;
mod range;

use std::ops::{Bound, ControlFlow, RangeBounds};

use catalog::Space;
use engine::{Direction, Early, Engine, Error, Order, OrderState, OrderedEngine, ScanCursor};

#[cfg(doc)]
use crate::Store;
use crate::handles::Kind;
use crate::reply::keep;
use crate::{CallbackReply, Tree};
pub(crate) use bounds::Bounds;

pub use few::prefix_range;
pub(crate) use few::{order_for, pass};
pub use range::{Keys, Range};

/// A key and its value.
pub type Item = (Vec<u8>, Vec<u8>);

/// A key and its value, borrowed from a range.
pub type ItemRef<'r> = (&'r [u8], &'r [u8]);

/// Progress of building the ordered index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OrderProgress {
    /// Steps done: two for each key, or one after a clean close.
    pub done: u64,
    /// Steps in total; an estimate at first.
    pub total: u64,
}

/// The ordered operations of a store, from [`Tree::ordered`].
///
/// Keys sort by their bytes. Every operation sees all writes that were acknowledged before it began, and does not
/// block writers. No operation is a snapshot: it may or may not see concurrent writes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// for (city, people) in [("oslo", "717710"), ("bergen", "291940"), ("bodø", "53712")] {
///     store.put(city, people)?;
/// }
/// let ordered = store.ordered()?;
/// let keys = ordered.prefix("b")?.map(|item| item.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(keys, [&b"bergen"[..], "bodø".as_bytes()]);
/// assert_eq!(ordered.last()?.expect("there are three").0, b"oslo");
/// assert_eq!(ordered.count("c"..)?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ordered {
    tree: Tree,
    early: Early,
}

impl Clone for Ordered {
    fn clone(&self) -> Ordered {
        Ordered { tree: self.tree.held_by(Kind::Ordered), early: self.early }
    }
}

impl Ordered {
    pub(crate) fn new(tree: Tree, early: Early) -> Ordered {
        Ordered { tree, early }
    }

    /// Returns a view whose operations fail with [`Error::NotOrderedYet`] instead of waiting for the index.
    #[must_use]
    pub fn fail_if_not_ready(self) -> Ordered {
        Ordered { early: Early::Refuse, ..self }
    }

    /// Returns true once operations no longer wait for the index.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn is_ready(&self) -> Result<bool, Error> {
        let engine = self.engine()?;
        let is_built = || engine.stats().order.is_some_and(|order| order.state == OrderState::Ready);
        Ok(engine.features().order == Order::Native || is_built())
    }

    /// Waits for the index, and calls `progress` from time to time.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let ordered = store.ordered()?;
    /// ordered.wait_until_ready(|progress| println!("{} of {} steps", progress.done, progress.total))?;
    /// assert!(ordered.is_ready()?);
    /// // An event loop serves other clients instead of waiting.
    /// assert_eq!(ordered.fail_if_not_ready().count("o"..)?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a damaged item prevents building it; [`Error::Medium`].
    pub fn wait_until_ready(&self, mut progress: impl FnMut(OrderProgress)) -> Result<(), Error> {
        let engine = self.engine()?;
        loop {
            match engine.catch_up(Early::Refuse) {
                Err(Error::NotOrderedYet { done, total }) => progress(OrderProgress { done, total }),
                result => return result,
            }
            engine.step()?;
        }
    }

    /// Returns an iterator over the items of `range` in key order. `rev` and `next_back` iterate from the end.
    ///
    /// # Errors
    /// [`Error::NotOrderedYet`] after [`Ordered::fail_if_not_ready`], or within another operation's callback;
    /// otherwise as for [`Tree::get`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Range, Error> {
        self.range_within(Bounds::of(&range))
    }

    /// Returns an iterator over the items whose keys begin with `prefix`, in key order.
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range, Error> {
        self.range_within(Bounds::of_prefix(prefix.as_ref()))
    }

    /// Returns an iterator over all items in key order.
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn iter(&self) -> Result<Range, Error> {
        self.range_within(Bounds::ALL)
    }

    /// Calls `each` with the items from key `from` on, in key order, until it returns `Break`; returns the value of the
    /// `Break`. It copies nothing, so it is the fastest way to read a few items. `each` should be quick: no space is
    /// reused while it runs.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], [number; 10])?; }
    /// use std::ops::ControlFlow;
    ///
    /// let (mut count, mut bytes) = (0, 0);
    /// store.ordered()?.scan([17], |_key, value| {
    ///     (count, bytes) = (count + 1, bytes + value.len());
    ///     if count < 50 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!((count, bytes), (50, 500));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn scan<R: CallbackReply>(
        &self,
        from: impl AsRef<[u8]>,
        each: impl FnMut(&[u8], &[u8]) -> R,
    ) -> Result<Option<R::Break>, Error> {
        self.walk(Bound::Included(from.as_ref()), Direction::Forward, each)
    }

    /// Like [`Ordered::scan`], in descending order.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let mut keys = Vec::new();
    /// store.ordered()?.scan_back("tz", |key, _| keys.push(key.to_vec()))?;
    /// assert_eq!(keys, [b"two", b"one"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn scan_back<R: CallbackReply>(
        &self,
        from: impl AsRef<[u8]>,
        each: impl FnMut(&[u8], &[u8]) -> R,
    ) -> Result<Option<R::Break>, Error> {
        self.walk(Bound::Included(from.as_ref()), Direction::Backward, each)
    }

    /// Returns the item with the least key.
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn first(&self) -> Result<Option<Item>, Error> {
        self.nearest(Bound::Unbounded, Direction::Forward)
    }

    /// Returns the item with the greatest key.
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn last(&self) -> Result<Option<Item>, Error> {
        self.nearest(Bound::Unbounded, Direction::Backward)
    }

    /// Returns the item with the greatest key that is not above `key`.
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn floor(&self, key: impl AsRef<[u8]>) -> Result<Option<Item>, Error> {
        self.nearest(Bound::Included(key.as_ref()), Direction::Backward)
    }

    /// Returns the item with the least key that is not below `key`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("10:00", "rain"), ("16:00", "sun")])?;
    /// let ordered = store.ordered()?;
    /// assert_eq!(ordered.ceiling("12:00")?.expect("there is one").1, b"sun");
    /// assert_eq!(ordered.floor("12:00")?.expect("there is one").1, b"rain");
    /// assert_eq!(ordered.first()?.expect("there is one").0, b"10:00");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn ceiling(&self, key: impl AsRef<[u8]>) -> Result<Option<Item>, Error> {
        self.nearest(Bound::Included(key.as_ref()), Direction::Forward)
    }

    /// Returns the number of keys in `range`. Reads the index, but no items except for those of the last leaf.
    ///
    /// # Errors
    /// As for [`Ordered::range`].
    pub fn count<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64, Error> {
        let bounds = Bounds::of(&range);
        let engine = self.caught_up()?;
        let mut total = 0;
        for bounds in bounds.stored(self.tree.keyspace().space()?) {
            let (mut cursor, mut goes_on) = (ScanCursor::new(bounds.low(), Direction::Forward), true);
            while goes_on {
                let (count, has_more) = engine.count(&mut cursor, bounds.high())?;
                (total, goes_on) = (total + count, has_more);
            }
        }
        Ok(total)
    }

    /// Deletes the keys of `range` one by one, and returns their number. Not atomic for readers or for a crash.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("log:1", "a"), ("log:2", "b"), ("name", "ada")])?;
    /// assert_eq!(store.ordered()?.delete_range("log:".."log;")?, 2);
    /// assert_eq!(store.len()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Ordered::range`] and [`Tree::delete`]; some keys may have been deleted.
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64, Error> {
        let mut count = 0;
        for item in self.range(range)? {
            count += u64::from(self.tree.delete(item?.0)?);
        }
        Ok(count)
    }

    pub(crate) fn range_within(&self, bounds: Bounds) -> Result<Range, Error> {
        self.caught_up()?;
        Range::new(&self.tree, bounds)
    }

    fn nearest(&self, from: Bound<&[u8]>, direction: Direction) -> Result<Option<Item>, Error> {
        self.walk(from, direction, |key, value| ControlFlow::Break((key.to_vec(), value.to_vec())))
    }

    fn walk<R: CallbackReply>(
        &self,
        from: Bound<&[u8]>,
        direction: Direction,
        each: impl FnMut(&[u8], &[u8]) -> R,
    ) -> Result<Option<R::Break>, Error> {
        walk(&self.tree, self.early, from, direction, each)
    }

    pub(crate) fn engine(&self) -> Result<&dyn OrderedEngine, Error> {
        ordered_engine(self.tree.inner().engine()?)
    }

    pub(crate) fn caught_up(&self) -> Result<&dyn OrderedEngine, Error> {
        caught_up(&self.tree, self.early)
    }
}

/// Starts building the ordered index, unless it exists or is being built.
pub(crate) fn want_order(tree: &Tree) -> Result<(), Error> {
    let engine = ordered_engine(tree.inner().engine()?)?;
    engine.request_order()?;
    // No worker is woken if the index exists or is being built.
    tree.inner().ask_wanted(engine.wanted_threads());
    Ok(())
}

fn caught_up(tree: &Tree, early: Early) -> Result<&dyn OrderedEngine, Error> {
    let engine = ordered_engine(tree.inner().engine()?)?;
    if let Err(error) = engine.catch_up(early) {
        // The index may have been dropped after an error, with no thread rebuilding it.
        tree.inner().ask_workers();
        return Err(error);
    }
    Ok(engine)
}

/// Calls `each` with the tree's items from `from` on, in a direction, until it breaks.
pub(crate) fn walk<R: CallbackReply>(
    tree: &Tree,
    early: Early,
    from: Bound<&[u8]>,
    direction: Direction,
    mut each: impl FnMut(&[u8], &[u8]) -> R,
) -> Result<Option<R::Break>, Error> {
    let engine = caught_up(tree, early)?;
    let (space, mut stopped) = (tree.keyspace().space()?, None);
    if space == Space::Whole {
        let mut cursor = ScanCursor::new(from, direction);
        while engine.scan(&mut cursor, &mut |key, value| keep(each(key, value), &mut stopped))? {}
        return Ok(stopped);
    }
    let mut ranges = Bounds::from(from, direction).stored(space);
    if direction == Direction::Backward {
        ranges.reverse();
    }
    for bounds in ranges {
        let mut cursor = ScanCursor::new(bounds.start(direction), direction);
        let mut show = |stored: &[u8], value: &[u8]| match space.key_of(stored).filter(|_| bounds.contains(stored)) {
            Some(key) => keep(each(key, value), &mut stopped),
            None => ControlFlow::Break(()),
        };
        while engine.scan(&mut cursor, &mut show)? {}
        if stopped.is_some() {
            break;
        }
    }
    Ok(stopped)
}

/// Returns the ordered operations of an engine.
pub(crate) fn ordered_engine(engine: &dyn Engine) -> Result<&dyn OrderedEngine, Error> {
    engine.ordered().ok_or_else(|| match engine.features().order {
        Order::No => Error::Unsupported { engine: engine.name(), what: "order" },
        Order::Asked | Order::Native => Error::NoOrder,
    })
}
