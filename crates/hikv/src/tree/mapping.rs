//! The mapping of a tree's keys to stored keys.

use std::sync::Arc;

use catalog::Space;
use engine::Error;
use smallvec::SmallVec;

use crate::trees::{Named, Trees};

/// The mapping of a handle's keys to stored keys.
#[derive(Clone, Debug)]
pub(crate) enum Mapping {
    /// That of the tree without a name.
    Nameless,
    Named(Arc<Named>),
    /// Every stored key, those of the catalog included.
    Stored,
}

impl Mapping {
    /// Returns the mapping of a tree with a name. The server's first database has the keys of the tree without a name.
    pub(crate) fn of(named: Arc<Named>) -> Mapping {
        if matches!(named.space(), Ok(Space::Nameless)) { Mapping::Nameless } else { Mapping::Named(named) }
    }

    /// Returns true for the same tree.
    pub(crate) fn is_same(&self, other: &Mapping) -> bool {
        match (self, other) {
            (Mapping::Named(a), Mapping::Named(b)) => Arc::ptr_eq(a, b),
            (Mapping::Nameless, Mapping::Nameless) | (Mapping::Stored, Mapping::Stored) => true,
            _ => false,
        }
    }

    pub(super) fn as_named(&self) -> Option<&Arc<Named>> {
        if let Mapping::Named(named) = self { Some(named) } else { None }
    }

    pub(super) fn space(&self, trees: &Trees) -> Result<Space, Error> {
        match self {
            Mapping::Nameless => Ok(trees.nameless()),
            Mapping::Named(named) => named.space(),
            Mapping::Stored => Ok(Space::Whole),
        }
    }

    /// Returns the tree's name, if it has one.
    pub(crate) fn name(&self) -> Option<String> {
        self.as_named().map(|named| named.name().into())
    }

    /// Runs an operation on keys of the tree's space. Within a window of the tree's gate, the space stays the same.
    pub(crate) fn with_space<R>(&self, trees: &Trees, run: impl FnOnce(Space) -> Result<R, Error>) -> Result<R, Error> {
        match self {
            Mapping::Nameless => trees.with_nameless(run),
            Mapping::Named(_) | Mapping::Stored => run(self.space(trees)?),
        }
    }
}

/// Several keys in their stored form. A few short ones need no allocation.
#[derive(Default)]
pub(crate) struct StoredKeys {
    /// The keys, one after the other.
    bytes: SmallVec<[u8; 256]>,
    lens: SmallVec<[usize; 8]>,
}

impl StoredKeys {
    /// Returns the stored forms of some keys of a space.
    pub(crate) fn of<'k>(space: Space, keys: impl Iterator<Item = &'k [u8]>) -> StoredKeys {
        let mut stored = StoredKeys::default();
        keys.for_each(|key| stored.push(space, key));
        stored
    }

    pub(crate) fn push(&mut self, space: Space, key: &[u8]) {
        let before = self.bytes.len();
        space.with_stored(key, |stored| self.bytes.extend_from_slice(stored));
        self.lens.push(self.bytes.len() - before);
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
