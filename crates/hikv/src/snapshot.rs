//! Reading a store as it was at one moment.

use std::ops::{ControlFlow, RangeBounds};
use std::sync::Arc;

use engine::{Cursor, Damage, Engine, Error, Expiry, Moment, OnDamaged, SnapshotEngine};

use crate::handles::Kind;
use crate::ordered::Bounds;
use crate::read_view::report_damage;
use crate::{Range, Store};

/// A store as it was when [`Store::snapshot`] was called, however it is written on. Clones share it; it ends with the last
/// clone, and with what iterates over the snapshot.
///
/// A key that had expired when it was taken is not there; one that expires later is.
///
/// What is replaced or deleted meanwhile, and was there, is kept: its room is not reused before the snapshot ends
/// ([`crate::Stats::kept_bytes`]), and nothing limits it. Each such item also costs some 150 bytes of memory and its key's
/// length. A snapshot does not outlive its process, and keeps the store open.
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
}

/// Released when it is dropped.
#[derive(Debug)]
struct Taken {
    store: Store,
    moment: Moment,
}

impl Drop for Taken {
    fn drop(&mut self) {
        // In a child of a fork there is nothing to release.
        if let Ok(engine) = self.store.engine() {
            engine.snapshots().into_iter().for_each(|snapshots| snapshots.release_snapshot(self.moment));
        }
    }
}

impl Store {
    /// Takes a snapshot: the store as it is now. It has every write that returned before this call and none that begins
    /// after it returns; a write that runs at the same time is in the snapshot whole or not at all, and if so, with all
    /// that had returned before that write began.
    ///
    /// It costs next to nothing, but waits for the operations that run at this moment, and so for the callbacks of other
    /// threads ([`Store::get_with`], [`Store::for_each`] and the like).
    ///
    /// # Errors
    /// [`Error::InsideCallback`] inside of such a callback. [`Error::TooManySnapshots`] after four thousand million of one
    /// store.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let moment = snapshots(self.engine()?)?.take_snapshot()?;
        Ok(Snapshot { taken: Arc::new(Taken { store: self.held_by(Kind::Snapshot), moment }) })
    }
}

impl Snapshot {
    /// The store, as it is now.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.taken.store
    }

    /// A copy of the value that the key had.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Shows the value that the key had, where it lies, to `read`, which should be quick.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get_with<R>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let (mut read, mut result) = (Some(read), None);
        let mut found = |_, _, value: &[u8]| result = read.take().map(|read| read(value));
        self.engine()?.get_at(self.taken.moment, key.as_ref(), &mut found)?;
        Ok(result)
    }

    /// True if the key was there.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.engine()?.get_at(self.taken.moment, key.as_ref(), &mut |_, _, _| {})
    }

    /// Copies of the values that several keys had.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Shows every item to `each`, exactly once and in no order, until it says to stop.
    ///
    /// # Errors
    /// See [`Error`]; a damaged item ends the walk.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        self.for_each_with_expiry(|key, value, _| each(key, value))
    }

    /// As [`Snapshot::for_each`], and shows when each item expires.
    ///
    /// # Errors
    /// As for [`Snapshot::for_each`].
    pub fn for_each_with_expiry(&self, each: impl FnMut(&[u8], &[u8], Expiry) -> ControlFlow<()>) -> Result<(), Error> {
        self.walk(each, &mut Err)
    }

    /// As [`Snapshot::for_each_with_expiry`], without the items that are damaged, each of which is told to `damaged`.
    ///
    /// # Errors
    /// See [`Error`]; a part of the store that cannot be read is one, since nobody knows which items it has.
    pub fn for_each_skipping_damage(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> ControlFlow<()>,
        mut damaged: impl FnMut(Damage),
    ) -> Result<(), Error> {
        self.walk(each, &mut |error| report_damage(error, &mut damaged))
    }

    fn walk(
        &self,
        mut each: impl FnMut(&[u8], &[u8], Expiry) -> ControlFlow<()>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<(), Error> {
        let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
        while !cursor.is_done() && flow.is_continue() {
            let mut show = |key: &[u8], value: &[u8], expiry| {
                if flow.is_continue() {
                    flow = each(key, value, expiry);
                }
            };
            cursor = self.engine()?.walk_at(self.taken.moment, cursor, &mut show, damaged)?;
        }
        Ok(())
    }

    /// The items of `range`, in order; from its end with `rev` and `next_back`. Has the store's keys put in order first, if
    /// they are not ([`Store::ordered`]).
    ///
    /// # Errors
    /// See [`Error`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Range, Error> {
        self.range_within(Bounds::of(&range))
    }

    /// The items whose keys begin with `prefix`, in order; see [`Snapshot::range`].
    ///
    /// # Errors
    /// See [`Error`].
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
        snapshots(self.store().engine()?)
    }
}

fn snapshots(engine: &dyn Engine) -> Result<&dyn SnapshotEngine, Error> {
    engine.snapshots().ok_or_else(|| Error::Unsupported { engine: engine.name(), what: "snapshots" })
}
