//! Snapshots: reading a store as it was at one moment.

use std::ops::RangeBounds;
use std::sync::Arc;

use catalog::Space;
use engine::{Damage, Engine, Error, Expiry, Moment, OnDamaged, SnapshotEngine};

#[cfg(doc)]
use crate::Tree;
use crate::ordered::Bounds;
use crate::read_view::{report_damage, walk};
use crate::trees::Hold;
use crate::{CallbackReply, Range, Store, Value};

/// A read-only view of the store at the moment of [`Store::snapshot`], unaffected by later writes. Clones share it. It
/// ends with its last clone and its last iterator.
///
/// A key that had expired when the snapshot was taken is absent; a key that expires later is present.
///
/// Items of the snapshot that writers replace or delete are kept until it ends, without a limit: their space is not
/// reused ([`crate::Stats::kept_bytes`]). Each of them also uses about 150 bytes of memory in addition to its key. A
/// snapshot does not outlive its process, and keeps the store open.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// store.put("stock", "7")?;
/// store.put("sold", "3")?;
/// let evening = store.snapshot()?;
/// store.put("stock", "6")?;
/// store.delete("sold")?;
/// assert_eq!(evening.get("stock")?.as_deref(), Some(&b"7"[..]));
/// let keys: Vec<_> = evening.range::<&str>(..)?.map(|item| item.map(|(key, _)| key)).collect::<Result<_, _>>()?;
/// assert_eq!(keys, [b"sold".to_vec(), b"stock".to_vec()]);
/// drop(evening);
/// assert_eq!(store.stats().kept_count, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    taken: Arc<Taken>,
    /// The keys of the tree that this handle reads.
    space: Space,
}

/// One snapshot of the engine, released on drop.
#[derive(Debug)]
struct Taken {
    store: Store,
    moment: Moment,
    /// Keeps the keys of trees that are dropped after the snapshot.
    _hold: Hold,
}

impl Drop for Taken {
    fn drop(&mut self) {
        // In a child process after a fork there is nothing to release.
        if let Ok(engine) = self.store.inner().engine() {
            engine.snapshots().into_iter().for_each(|snapshots| snapshots.release_snapshot(self.moment));
        }
    }
}

impl Snapshot {
    /// Takes a snapshot, which holds `store`.
    pub(crate) fn take(store: Store) -> Result<Snapshot, Error> {
        let hold = store.inner().trees.reclaimer.hold();
        let moment = snapshots(store.inner().engine()?)?.take_snapshot()?;
        let snapshot = Snapshot { taken: Arc::new(Taken { store, moment, _hold: hold }), space: Space::Whole };
        let space = snapshot.space_of(None)?.unwrap_or(Space::Whole);
        Ok(Snapshot { space, ..snapshot })
    }

    /// Returns the snapshot's view of the tree that had this name at its moment, or `None` if there was none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.tree("jobs")?.put("1", "resize cat.png")?;
    /// let evening = store.snapshot()?;
    /// store.drop_tree("jobs")?;
    /// let jobs = evening.tree("jobs")?.expect("it existed");
    /// assert_eq!(jobs.get("1")?.as_deref(), Some(&b"resize cat.png"[..]));
    /// assert!(evening.tree("other")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn tree(&self, name: impl AsRef<str>) -> Result<Option<Snapshot>, Error> {
        let space = self.space_of(Some(name.as_ref()))?;
        Ok(space.map(|space| Snapshot { taken: Arc::clone(&self.taken), space }))
    }

    /// Returns a view of all stored keys, those of the catalog included.
    pub(crate) fn stored(&self) -> Snapshot {
        Snapshot { taken: Arc::clone(&self.taken), space: Space::Whole }
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    fn space_of(&self, name: Option<&str>) -> Result<Option<Space>, Error> {
        if !self.store().inner().engine()?.has_trees() {
            return Ok(name.is_none().then_some(Space::Whole));
        }
        let stored = self.stored();
        catalog::space_at(name, |key| stored.get_in_place(key, <[u8]>::to_vec))
    }

    /// Returns the store in its present state.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.taken.store
    }

    /// Returns a copy of the key's value at the snapshot, or `None` if the key was absent.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        self.get_in_place(key, Value::copied)
    }

    /// Calls `read` with the key's value at the snapshot, in place. `read` should be quick.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("line", "to be or not to be")?;
    /// let snapshot = store.snapshot()?;
    /// store.delete("line")?;
    /// assert_eq!(snapshot.get_in_place("line", |value| value.len())?, Some(18));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_in_place<R>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        self.space.with_stored(key.as_ref(), |key| {
            let (mut read, mut result) = (Some(read), None);
            let mut found = |_, _, value: &[u8]| result = read.take().map(|read| read(value));
            self.engine()?.get_at(self.taken.moment, key, &mut found)?;
            Ok(result)
        })
    }

    /// Returns true if the key existed at the snapshot.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let engine = self.engine()?;
        self.space.with_stored(key.as_ref(), |key| engine.get_at(self.taken.moment, key, &mut |_, _, _| {}))
    }

    /// Returns copies of several keys' values at the snapshot.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Value>>, Error> {
        keys.into_iter().map(|key| self.get(key)).collect()
    }

    /// Calls `each` with every item, exactly once and in no order, until it returns `Break`; returns the value of the
    /// `Break`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged item; otherwise as for [`Tree::get`].
    pub fn for_each<R: CallbackReply>(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> R,
    ) -> Result<Option<R::Break>, Error> {
        self.for_each_with_expiry(|key, value, _| each(key, value))
    }

    /// Like [`Snapshot::for_each`], and passes each item's expiry.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Expiry;
    ///
    /// store.put("key", "value")?;
    /// store.snapshot()?.for_each_with_expiry(|_key, _value, expiry| assert_eq!(expiry, Expiry::NEVER))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Snapshot::for_each`].
    pub fn for_each_with_expiry<R: CallbackReply>(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> R,
    ) -> Result<Option<R::Break>, Error> {
        self.walk(each, &mut Err)
    }

    /// Like [`Snapshot::for_each_with_expiry`], but skips damaged items and reports each to `damaged`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("key", "value")?;
    /// let (mut count, mut damage) = (0, Vec::new());
    /// store.snapshot()?.for_each_skipping_damage(|_, _, _| count += 1, |found| damage.push(found))?;
    /// assert_eq!((count, damage.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`]. An unreadable part of the store is an error, because its items are unknown.
    pub fn for_each_skipping_damage<R: CallbackReply>(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> R,
        mut damaged: impl FnMut(Damage),
    ) -> Result<Option<R::Break>, Error> {
        self.walk(each, &mut |error| report_damage(error, &mut damaged))
    }

    fn walk<R: CallbackReply>(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> R,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Option<R::Break>, Error> {
        walk(self.space, each, |cursor, show| self.engine()?.walk_at(self.taken.moment, cursor, show, damaged))
    }

    /// Returns an iterator over the items of `range` in key order. `rev` and `next_back` iterate from the end. Builds
    /// the store's ordered index first if there is none ([`Tree::ordered`]).
    ///
    /// # Errors
    /// As for [`Tree::ordered`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Range, Error> {
        self.range_within(Bounds::of(&range))
    }

    /// Returns an iterator over the items whose keys begin with `prefix`, in key order; see [`Snapshot::range`].
    ///
    /// # Errors
    /// As for [`Tree::ordered`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range, Error> {
        self.range_within(Bounds::of_prefix(prefix.as_ref()))
    }

    fn range_within(&self, bounds: Bounds) -> Result<Range, Error> {
        self.store().ordered()?.caught_up()?;
        Ok(Range::at_snapshot(self.clone(), bounds))
    }

    pub(crate) fn moment(&self) -> Moment {
        self.taken.moment
    }

    fn engine(&self) -> Result<&dyn SnapshotEngine, Error> {
        snapshots(self.store().inner().engine()?)
    }
}

fn snapshots(engine: &dyn Engine) -> Result<&dyn SnapshotEngine, Error> {
    engine.snapshots().ok_or_else(|| Error::Unsupported { engine: engine.name(), what: "snapshots" })
}
