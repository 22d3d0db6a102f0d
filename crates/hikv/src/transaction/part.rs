//! The reads and changes of an attempt in one tree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use catalog::Space;
use engine::{BatchOp, Error, Expiry, Version, Witness};

use super::reads::RangeRead;
use crate::ordered::Bounds;
use crate::{ItemView, Store, Tree};

/// The changes that an attempt wants to make in a tree, by key.
pub(super) type Changes = BTreeMap<Vec<u8>, Change>;

/// A change of one key.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Vec<u8>, Expiry),
    Delete,
}

impl Change {
    /// Returns the value that the key will have.
    pub(super) fn value(&self) -> Option<&[u8]> {
        match self {
            Change::Put(value, _) => Some(value),
            Change::Delete => None,
        }
    }

    /// Returns the expiry that the key will have, `None` if the key is deleted.
    pub(super) fn expiry(&self) -> Option<Expiry> {
        match *self {
            Change::Put(_, expiry) => Some(expiry),
            Change::Delete => None,
        }
    }

    pub(super) fn op<'a>(&'a self, key: &'a [u8]) -> BatchOp<'a> {
        match self {
            Change::Put(value, expiry) if expiry.is_never() => BatchOp::Put { key, value },
            Change::Put(value, expiry) => BatchOp::PutUntil { key, value, expiry: *expiry },
            Change::Delete => BatchOp::Delete { key },
        }
    }
}

/// The identity of a value that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Noted {
    pub(super) version: Version,
    /// As good as the version while no space that the attempt has read is reused.
    pub(super) witness: Witness,
}

impl Noted {
    pub(super) fn of(item: &ItemView<'_>) -> Noted {
        Noted { version: item.version(), witness: item.witness() }
    }
}

/// The reads and changes in one tree.
#[derive(Debug)]
pub(super) struct Part<'s> {
    tree: Cow<'s, Tree>,
    /// The tree's space when the attempt began to use it. A tree that was cleared has another one.
    space: Space,
    /// The identity of each key's value that was read, `None` if it was absent.
    points: BTreeMap<Vec<u8>, Option<Noted>>,
    ranges: Vec<RangeRead>,
    changes: Changes,
}

impl<'s> Part<'s> {
    /// Begins the part of the store's own tree.
    pub(super) fn of_store(store: &'s Store) -> Result<Part<'s>, Error> {
        Part::begin(Cow::Borrowed(store))
    }

    /// Begins the part of another tree.
    pub(super) fn of_tree(tree: &Tree) -> Result<Part<'s>, Error> {
        Part::begin(Cow::Owned(tree.clone()))
    }

    fn begin(tree: Cow<'s, Tree>) -> Result<Part<'s>, Error> {
        let space = tree.keyspace().space()?;
        Ok(Part { tree, space, points: BTreeMap::new(), ranges: Vec::new(), changes: Changes::new() })
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn space(&self) -> Space {
        self.space
    }

    /// Records the value of a key.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key had another version before.
    pub(super) fn note(&mut self, key: &[u8], read: Option<Noted>) -> Result<(), Error> {
        match self.points.get(key) {
            Some(noted) if noted.map(|noted| noted.version) != read.map(|read| read.version) => Err(Error::Conflict),
            Some(_) => Ok(()),
            None => {
                self.points.insert(key.to_vec(), read);
                Ok(())
            }
        }
    }

    /// Returns the identity of the key's value in the store, `None` if it is absent.
    pub(super) fn read(&self, key: &[u8]) -> Result<Option<Noted>, Error> {
        self.tree.in_place().get_item(key, |item| Noted::of(&item))
    }

    /// Returns the version of a key of a range whose item expires, `None` if it does not.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the item has expired since.
    pub(super) fn expiring_version_of(&self, key: &[u8]) -> Result<Option<Version>, Error> {
        let version = self.tree.in_place().get_item(key, |item| (!item.expiry().is_never()).then(|| item.version()))?;
        version.ok_or(Error::Conflict)
    }

    /// Returns the witness of the key's value in the store, `None` if it is absent.
    pub(super) fn witness_of(&self, key: &[u8]) -> Result<Option<Witness>, Error> {
        self.tree.in_place().get_part_item(key, |item| item.witness())
    }

    /// Returns the keys that were read, with the identities of their values.
    pub(super) fn points(&self) -> impl Iterator<Item = (&[u8], Option<Noted>)> {
        self.points.iter().map(|(key, noted)| (&**key, *noted))
    }

    /// Begins the read of a range, and returns its number.
    pub(super) fn begin_range(&mut self, bounds: Bounds) -> usize {
        self.ranges.push(RangeRead::new(bounds));
        self.ranges.len() - 1
    }

    pub(super) fn range_mut(&mut self, number: usize) -> &mut RangeRead {
        &mut self.ranges[number]
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = &RangeRead> {
        self.ranges.iter()
    }

    /// Returns true if a part of a range was read.
    pub(super) fn has_ranges(&self) -> bool {
        self.ranges().any(|range| range.parts().next().is_some())
    }

    /// Returns the keys to change.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&[u8], &Change)> {
        self.changes.iter().map(|(key, change)| (&**key, change))
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the change that the attempt wants to make to the key.
    pub(super) fn change_of(&self, key: &[u8]) -> Option<&Change> {
        self.changes.get(key)
    }

    pub(super) fn change(&mut self, key: &[u8], change: Change) {
        self.changes.insert(key.to_vec(), change);
    }

    /// Returns the first change within the bounds, or the last one.
    pub(super) fn change_within(&self, bounds: &Bounds, is_last: bool) -> Option<(&[u8], &Change)> {
        if bounds.is_empty() {
            return None;
        }
        let mut within = self.changes.range::<[u8], _>((bounds.low(), bounds.high()));
        let found = if is_last { within.next_back() } else { within.next() };
        found.map(|(key, change)| (&**key, change))
    }

    pub(super) fn all_changes(&self) -> Changes {
        self.changes.clone()
    }

    pub(super) fn set_changes(&mut self, changes: Changes) {
        self.changes = changes;
    }
}
