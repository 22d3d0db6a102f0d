//! A tree's keys in their stored form.

use std::ptr;
use std::sync::Arc;

use catalog::Space;
use engine::{Engine, Error};
use pmem::Durability;

use super::{Keys, Tree};
use crate::Store;
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
        self.keys.with_space(&self.inner.trees, |space| space.with_stored(key, read))
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
            self.keys.with_space(&self.inner.trees, |space| space.with_stored(key, |stored| change(engine, stored)))
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

    /// Runs an operation on keys of the tree's space. Within a window of the tree's gate, the space stays the same.
    pub(crate) fn with_space<R>(&self, trees: &Trees, run: impl FnOnce(Space) -> Result<R, Error>) -> Result<R, Error> {
        match self {
            Keys::Nameless => trees.with_nameless(run),
            Keys::Named(_) | Keys::Stored => run(self.space(trees)?),
        }
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
        self.change(|engine| {
            self.keys.with_space(&self.inner.trees, |space| {
                let stored = StoredKeys::of(space, keys.iter().copied());
                change(engine, &stored.iter().collect::<Vec<_>>())
            })
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
        self.change(|engine| {
            self.keys.with_space(&self.inner.trees, |space| {
                let stored = StoredKeys::of(space, pairs.iter().map(|(key, _)| *key));
                let stored: Vec<_> = stored.iter().zip(pairs).map(|(key, (_, value))| (key, *value)).collect();
                change(engine, &stored)
            })
        })
    }

    /// Writes several trees at once: `change` gets the spaces of all `trees`, which stay the same meanwhile. A caller
    /// that holds the gate lock is alone, and opens no window.
    pub(crate) fn change_trees<R>(
        &self,
        trees: &[&Keys],
        is_alone: bool,
        change: impl FnOnce(&dyn Engine, &[Space]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let inner = &*self.inner;
        let named = || trees.iter().filter_map(|keys| keys.as_named());
        if let Some(other) = named().find(|named| !inner.trees.owns(named)) {
            return Err(Error::NoSuchTree { name: other.name() });
        }
        let has_other = trees.iter().any(|keys| keys.as_named().is_none());
        let mut gates: Vec<_> = named().map(|named| named.gate()).chain(has_other.then_some(&inner.gate)).collect();
        gates.sort_by_key(|gate| Arc::as_ptr(gate));
        gates.dedup_by_key(|gate| Arc::as_ptr(gate));
        let with_spaces = |engine: &dyn Engine| {
            inner.trees.with_nameless(|nameless| {
                let space = |keys: &&Keys| match keys {
                    Keys::Nameless => Ok(nameless),
                    Keys::Named(_) | Keys::Stored => keys.space(&inner.trees),
                };
                change(engine, &trees.iter().map(space).collect::<Result<Vec<_>, _>>()?)
            })
        };
        let write = || match is_alone {
            true => inner.change_without_window(with_spaces),
            false => inner.change_all(&gates, with_spaces),
        };
        match self.level {
            None => write(),
            Some(level) => inner.at(level, write),
        }
    }

    /// Returns true for a tree of this store.
    pub(crate) fn is_of(&self, store: &Store) -> bool {
        ptr::eq(self.inner(), store.inner())
    }

    /// Returns the mapping of its keys to stored keys.
    pub(crate) fn mapping(&self) -> &Keys {
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
