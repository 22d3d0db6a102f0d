//! The keys of a tree in the store, and the ways to read and change them.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use catalog::{Catalog, MARK, Space};
use engine::{BatchOp, Cursor, Engine, Error};
use pmem::Durability;
use smallvec::SmallVec;
use transact::Gate;

use super::Tree;
use super::mapping::{Mapping, StoredKeys};
use crate::in_place::InPlace;
use crate::store::Inner;

/// Keys that one call writes together. A multiple of each engine's group size.
pub(crate) const BATCH_COUNT: usize = 64;

/// The keys of a tree in the store: their stored form, the gate of their writers, and the durability of operations.
pub(crate) struct Keyspace {
    inner: Arc<Inner>,
    /// The durability of operations, if it is not the store's own.
    level: Option<Durability>,
    /// True if a lookup is worth a try before a read of the engine ([`engine::Reads::supports_lookup`]).
    supports_lookup: bool,
    mapping: Mapping,
    /// Keys whose first byte is below this are stored as they are. 0 of a tree with a name.
    plain_below: u16,
}

impl Clone for Keyspace {
    fn clone(&self) -> Keyspace {
        Keyspace { inner: Arc::clone(&self.inner), mapping: self.mapping.clone(), ..*self }
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("path", &self.inner.path).field("keys", &self.mapping).finish_non_exhaustive()
    }
}

impl Keyspace {
    /// Returns the keys of a store that was just opened.
    pub(crate) fn opened(inner: Inner) -> Keyspace {
        let supports_lookup = inner.engine.supports_lookup();
        let (inner, mapping) = (Arc::new(inner), Mapping::Nameless);
        Keyspace { inner, level: None, supports_lookup, mapping, plain_below: MARK.into() }
    }

    /// Returns the keys of another tree of the store.
    pub(crate) fn mapped(&self, mapping: Mapping) -> Keyspace {
        let plain_below = match mapping {
            Mapping::Nameless => MARK.into(),
            Mapping::Named(_) => 0,
            Mapping::Stored => u16::MAX,
        };
        Keyspace { mapping, plain_below, ..self.clone() }
    }

    /// Drops the handle, and returns the shared part if it was the last one. `None` means that the last other handle
    /// was dropped at the same time.
    pub(crate) fn of_last(handle: Tree) -> Result<Option<Inner>, Error> {
        let Tree { keyspace, handle } = handle;
        match Arc::into_inner(keyspace.inner) {
            Some(inner) => Ok(Some(inner)),
            None => handle.others().map_or(Ok(None), |others| Err(Error::StillOpen { kept_by: others.into() })),
        }
    }

    /// Returns the keys, for operations that are durable at `level` when they return.
    pub(crate) fn at_level(&self, level: Durability) -> Result<Keyspace, Error> {
        self.inner.check_level(level)?;
        Ok(Keyspace { level: Some(level), ..self.clone() })
    }

    /// Reads values in place.
    #[inline(always)]
    pub(crate) fn in_place(&self) -> InPlace<'_> {
        InPlace::of(self)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    #[inline(always)]
    pub(crate) fn supports_lookup(&self) -> bool {
        self.supports_lookup
    }

    /// Reads values in place.
    #[inline(always)]
    pub(crate) fn read<R>(&self, read: impl FnOnce(InPlace<'_>) -> Result<R, Error>) -> Result<R, Error> {
        match self.level {
            None => read(self.in_place()),
            Some(level) => read_at(self.in_place(), &self.inner, level, read),
        }
    }

    /// Makes a change.
    #[inline(always)]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        match self.level {
            None => self.inner.change(self.gate(), change),
            Some(level) => self.change_at_level(level, change),
        }
    }

    /// Runs `operate`, and returns when its writes and reads are durable at `level`, or at the keys' own.
    pub(crate) fn at<R>(
        &self,
        level: Option<Durability>,
        operate: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        match level.or(self.level) {
            None => operate(),
            Some(level) => self.inner.at(level, operate),
        }
    }

    /// Makes a change without a window: the caller closes gates, or has closed them.
    pub(crate) fn change_alone<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        self.at(None, || self.inner.change_without_window(change))
    }

    /// Makes a change at `level`, or at the tree's own level.
    pub(crate) fn change_at<R>(
        &self,
        level: Option<Durability>,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match level {
            None => self.change(change),
            Some(level) => self.change_at_level(level, change),
        }
    }

    #[cold]
    #[inline(never)]
    fn change_at_level<R>(
        &self,
        level: Durability,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.inner.at(level, || self.inner.change(self.gate(), change))
    }

    /// Returns the gate that writers of the tree's keys pass. A writer of stored keys may change any tree.
    #[inline(always)]
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        self.inner.gate_of(&self.mapping)
    }

    /// Runs `operate`, and returns when its writes and reads are durable at the tree's level.
    pub(crate) fn settled<R>(&self, operate: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        self.at(None, || self.inner.settled(operate))
    }

    /// Returns true for a handle of all stored keys.
    pub(crate) fn shows_all(&self) -> bool {
        matches!(self.mapping, Mapping::Stored)
    }

    /// Returns true if a key is stored under its own name, whatever trees the store has.
    #[inline(always)]
    pub(crate) fn is_plain(&self, key: &[u8]) -> bool {
        key.first().map_or(0, |first| u16::from(*first)) < self.plain_below
    }

    /// Returns the present space of the tree's keys.
    pub(crate) fn space(&self) -> Result<Space, Error> {
        self.mapping.space(&self.inner.trees)
    }

    /// Calls `read` with the stored form of `key`.
    #[inline(always)]
    pub(crate) fn with_key<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> Result<R, Error>) -> Result<R, Error> {
        if self.is_plain(key) { read(key) } else { self.with_stored(key, read) }
    }

    #[inline(never)]
    fn with_stored<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> Result<R, Error>) -> Result<R, Error> {
        self.mapping.with_space(&self.inner.trees, |space| space.with_stored(key, read))
    }

    /// Changes a key, whose stored form `change` gets, at `level` or at the tree's own.
    #[inline(always)]
    pub(crate) fn change_key<R>(
        &self,
        level: Option<Durability>,
        key: &[u8],
        change: impl FnOnce(&dyn Engine, &[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.is_plain(key) {
            self.change_at(level, |engine| change(engine, key))
        } else {
            self.change_stored(level, key, change)
        }
    }

    #[inline(never)]
    fn change_stored<R>(
        &self,
        level: Option<Durability>,
        key: &[u8],
        change: impl FnOnce(&dyn Engine, &[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.change_at(level, |engine| {
            self.mapping.with_space(&self.inner.trees, |space| space.with_stored(key, |stored| change(engine, stored)))
        })
    }

    /// Changes several keys, whose stored forms `change` gets.
    pub(crate) fn change_keys<R>(
        &self,
        keys: &[&[u8]],
        change: impl FnOnce(&dyn Engine, &[&[u8]]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if keys.iter().all(|key| self.is_plain(key)) {
            return self.change(|engine| change(engine, keys));
        }
        self.change(|engine| {
            self.mapping.with_space(&self.inner.trees, |space| {
                let stored = StoredKeys::of(space, keys.iter().copied());
                change(engine, &stored.iter().collect::<Vec<_>>())
            })
        })
    }

    /// Like [`Keyspace::change_keys`], for keys and their values.
    pub(crate) fn change_pairs<'k, R>(
        &self,
        pairs: &[(&'k [u8], &'k [u8])],
        change: impl FnOnce(&dyn Engine, &[(&[u8], &[u8])]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if pairs.iter().all(|(key, _)| self.is_plain(key)) {
            return self.change(|engine| change(engine, pairs));
        }
        self.change(|engine| {
            self.mapping.with_space(&self.inner.trees, |space| {
                let stored = StoredKeys::of(space, pairs.iter().map(|(key, _)| *key));
                let stored: Vec<_> = stored.iter().zip(pairs).map(|(key, (_, value))| (key, *value)).collect();
                change(engine, &stored)
            })
        })
    }

    /// Writes several trees at once: `change` gets the spaces of all `trees`, which stay the same until it returns. A
    /// caller that holds the gate lock is alone, and opens no window.
    pub(crate) fn change_trees<R>(
        &self,
        trees: &[&Mapping],
        is_alone: bool,
        change: impl FnOnce(&dyn Engine, &[Space]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let inner = &*self.inner;
        let named = || trees.iter().filter_map(|keys| keys.as_named());
        if let Some(other) = named().find(|named| !inner.trees.owns(named)) {
            return Err(Error::NoSuchTree { name: other.name() });
        }
        let mut gates: SmallVec<[_; 4]> = trees.iter().map(|keys| inner.gate_of(keys)).collect();
        gates.sort_by_key(|gate| Arc::as_ptr(gate));
        gates.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let with_spaces = |engine: &dyn Engine| {
            inner.trees.with_nameless(|nameless| {
                let space = |keys: &&Mapping| match keys {
                    Mapping::Nameless => Ok(nameless),
                    Mapping::Named(_) | Mapping::Stored => keys.space(&inner.trees),
                };
                change(engine, &trees.iter().map(space).collect::<Result<SmallVec<[_; 4]>, _>>()?)
            })
        };
        let write = || match is_alone {
            true => inner.change_without_window(with_spaces),
            false => inner.change_all(&gates, with_spaces),
        };
        self.at(None, write)
    }

    /// Deletes all nameless keys of a store with a catalog by one batch.
    pub(crate) fn clear_nameless(&self) -> Result<(), Error> {
        let (mut cursor, mut keys) = (Cursor::default(), StoredKeys::default());
        while !cursor.is_done() {
            cursor = self.inner.engine()?.walk(cursor, &mut |stored, _, _| {
                if Space::Nameless.key_of(stored).is_some() {
                    keys.push(Space::Whole, stored);
                }
            })?;
        }
        let deletes: Vec<_> = keys.iter().map(|key| BatchOp::Delete { key }).collect();
        self.change(|engine| engine.write_batch(&deletes))
    }

    /// Records the types of the store's tree of this name, or compares them with those that it has. A store that is
    /// open for reading alone records none.
    pub(crate) fn note_types(&self, name: &str, types: &str) -> Result<(), Error> {
        let inner = &*self.inner;
        let are_known = Catalog::of(inner.engine()?).has_types(name, types)?;
        if are_known || inner.is_read_only {
            return Ok(());
        }
        self.change_alone(|engine| inner.trees.note_types(engine, &inner.gate_lock, name, types))
    }

    /// Returns true for keys of the same store.
    pub(crate) fn is_of(&self, other: &Keyspace) -> bool {
        ptr::eq(self.inner(), other.inner())
    }

    /// Returns the mapping of its keys to stored keys.
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns the error that blocks writes to the tree, if there is one.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        self.inner.writable_engine()?;
        self.space().map(drop)
    }

    /// Returns the number of keys; see [`Tree::len`].
    pub(crate) fn len(&self) -> Result<u64, Error> {
        let (engine, space, inner) = (self.inner.engine()?, self.space()?, &self.inner);
        match space {
            Space::Whole => engine.len(),
            _ => match inner.trees.len(engine, &inner.gate_lock, &inner.gate, space)? {
                Some(len) => Ok(len),
                None => self.walked(space),
            },
        }
    }

    /// Returns the number of keys if it is known; see [`Tree::stats`].
    pub(crate) fn counted(&self) -> Result<Option<u64>, Error> {
        self.inner.trees.counted(self.inner.engine()?, self.space()?)
    }

    /// Counts the keys of a space by a walk.
    fn walked(&self, space: Space) -> Result<u64, Error> {
        let (engine, mut cursor, mut count) = (self.inner.engine()?, Cursor::default(), 0);
        while !cursor.is_done() {
            cursor = engine.walk(cursor, &mut |stored, _, _| count += u64::from(space.key_of(stored).is_some()))?;
        }
        Ok(count)
    }
}

#[cold]
#[inline(never)]
fn read_at<R>(
    in_place: InPlace<'_>,
    inner: &Inner,
    level: Durability,
    read: impl FnOnce(InPlace<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    inner.at(level, || read(in_place))
}
