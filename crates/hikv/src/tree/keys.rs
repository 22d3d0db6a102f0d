//! A tree's keys in their stored form.

use std::sync::Arc;

use catalog::Space;
use engine::{Engine, Error};
use pmem::Durability;

use super::{Keys, Tree};
use crate::handles::Kind;
use crate::trees::{Named, Trees};

impl Tree {
    /// Returns a handle of another tree of the store.
    pub(crate) fn named(&self, named: Arc<Named>) -> Tree {
        Tree { keys: Keys::Named(named), plain_below: 0, ..self.held_by(Kind::Tree) }
    }

    /// Returns a handle of all stored keys, those of all trees and of the catalog.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(&self) -> Tree {
        Tree { keys: Keys::Stored, plain_below: u16::MAX, ..self.held_by(Kind::Tree) }
    }

    /// Returns the tree's name, or `None` for the store's own tree.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.keys.as_named().map(|named| named.name().into())
    }

    /// Returns true for a handle of all stored keys.
    pub(crate) fn shows_all(&self) -> bool {
        matches!(self.keys, Keys::Stored)
    }

    /// Returns true if a key is stored under its own name, whatever trees the store has.
    #[inline(always)]
    pub(crate) fn is_plain(&self, key: &[u8]) -> bool {
        key.first().map_or(0, |first| u16::from(*first)) < self.plain_below
    }

    /// Returns the present space of the tree's keys.
    pub(crate) fn space(&self) -> Result<Space, Error> {
        self.keys.space(&self.inner.trees)
    }

    /// Calls `read` with the stored form of `key`.
    #[inline(always)]
    pub(crate) fn with_key<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> Result<R, Error>) -> Result<R, Error> {
        if self.is_plain(key) { read(key) } else { self.with_stored(key, read) }
    }

    #[inline(never)]
    fn with_stored<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> Result<R, Error>) -> Result<R, Error> {
        self.keys.read(&self.inner.trees, |space| space.with_stored(key, read))
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
        self.keys.write(&self.inner.trees, |space| {
            space.with_stored(key, |stored| self.change_at(level, |engine| change(engine, stored)))
        })
    }
}

impl Keys {
    fn as_named(&self) -> Option<&Arc<Named>> {
        if let Keys::Named(named) = self { Some(named) } else { None }
    }

    fn space(&self, trees: &Trees) -> Result<Space, Error> {
        match self {
            Keys::Nameless => Ok(trees.nameless()),
            Keys::Named(named) => named.space(),
            Keys::Stored => Ok(Space::Whole),
        }
    }

    /// Runs an operation that reads keys of the tree's space.
    pub(crate) fn read<R>(&self, trees: &Trees, read: impl FnOnce(Space) -> Result<R, Error>) -> Result<R, Error> {
        match self {
            Keys::Nameless => trees.with_nameless(read),
            Keys::Named(_) | Keys::Stored => read(self.space(trees)?),
        }
    }

    /// Runs an operation that may write keys of the tree's space.
    pub(crate) fn write<R>(&self, trees: &Trees, operate: impl FnOnce(Space) -> Result<R, Error>) -> Result<R, Error> {
        match self {
            Keys::Named(named) => named.write(operate),
            Keys::Nameless => trees.with_nameless(operate),
            Keys::Stored => operate(Space::Whole),
        }
    }

    /// Runs an operation that may write keys of several trees, given their spaces.
    pub(crate) fn write_all<R>(
        all: &[&Keys],
        trees: &Trees,
        operate: impl FnOnce(&[Space]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut named: Vec<&Arc<Named>> = all.iter().filter_map(|keys| keys.as_named()).collect();
        // In the order of addresses, so that two batches never wait for each other.
        named.sort_by_key(|named| Arc::as_ptr(named));
        named.dedup_by_key(|named| Arc::as_ptr(named));
        if let Some(other) = named.iter().find(|named| !trees.owns(named)) {
            return Err(Error::NoSuchTree { name: other.name() });
        }
        let _passing: Vec<_> = named.iter().map(|named| named.pass()).collect();
        trees.with_nameless(|nameless| {
            let space = |keys: &&Keys| match keys {
                Keys::Nameless => Ok(nameless),
                Keys::Named(_) | Keys::Stored => keys.space(trees),
            };
            operate(&all.iter().map(space).collect::<Result<Vec<_>, _>>()?)
        })
    }
}

impl Tree {
    /// Changes several keys, whose stored forms `change` gets.
    pub(crate) fn change_keys<R>(
        &self,
        keys: &[&[u8]],
        change: impl FnOnce(&dyn Engine, &[&[u8]]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if keys.iter().all(|key| self.is_plain(key)) {
            return self.change(|engine| change(engine, keys));
        }
        self.keys.write(&self.inner.trees, |space| {
            let stored = StoredKeys::of(space, keys.iter().copied());
            let stored: Vec<_> = stored.iter().collect();
            self.change(|engine| change(engine, &stored))
        })
    }

    /// Like [`Tree::change_keys`], for keys and their values.
    pub(crate) fn change_pairs<'k, R>(
        &self,
        pairs: &[(&'k [u8], &'k [u8])],
        change: impl FnOnce(&dyn Engine, &[(&[u8], &[u8])]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if pairs.iter().all(|(key, _)| self.is_plain(key)) {
            return self.change(|engine| change(engine, pairs));
        }
        self.keys.write(&self.inner.trees, |space| {
            let stored = StoredKeys::of(space, pairs.iter().map(|(key, _)| *key));
            let stored: Vec<_> = stored.iter().zip(pairs).map(|(key, (_, value))| (key, *value)).collect();
            self.change(|engine| change(engine, &stored))
        })
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the error that blocks writes to the tree, if there is one.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        self.inner.writable_engine()?;
        self.space().map(drop)
    }
}

/// Several keys in their stored form.
#[derive(Default)]
pub(crate) struct StoredKeys {
    /// The keys, one after the other.
    bytes: Vec<u8>,
    lens: Vec<usize>,
}

impl StoredKeys {
    /// Returns the stored forms of some keys of a space.
    pub(crate) fn of<'k>(space: Space, keys: impl Iterator<Item = &'k [u8]>) -> StoredKeys {
        let mut stored = StoredKeys::default();
        keys.for_each(|key| stored.push(space, key));
        stored
    }

    pub(crate) fn push(&mut self, space: Space, key: &[u8]) {
        self.lens.push(space.append_stored(key, &mut self.bytes));
    }

    /// Returns the keys in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lens.iter().map(move |len| {
            let (key, others) = rest.split_at(*len);
            rest = others;
            key
        })
    }
}
