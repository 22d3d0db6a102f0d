//! The keys that an attempt has read, and the identities of their values.
//!
//! While the attempt is recent ([`Start`]), place and checksum identify a value, at no cost. Later only a version does,
//! which is a hash of the value as it was read. Few attempts get that old, so the hash is computed when it is needed,
//! from a copy of the value. Values that would take too much memory are hashed at once.

use std::ops::Range;

use engine::{Error, Required, Version, Witness};
use epoch::Start;

use super::key_map::KeyMap;
use crate::ItemView;

/// Bytes of values that are kept for each tree, instead of their hashes.
const KEPT_BYTES_MAX: usize = 1 << 16;

/// Bytes that the first kept value reserves, for the next ones.
const KEPT_BYTES_MIN: usize = 1 << 10;

/// The identity of a value that was read.
#[derive(Clone, Debug)]
pub(super) struct Noted {
    witness: Witness,
    version: NotedVersion,
}

#[derive(Clone, Debug)]
enum NotedVersion {
    Known(Version),
    /// Its value is this part of the kept bytes.
    OfKept(Range<usize>),
}

/// The keys that were read in one tree, with the identity of each value, `None` if the key was absent.
#[derive(Debug, Default)]
pub(super) struct Points {
    by_key: KeyMap<Option<Noted>>,
    kept: Vec<u8>,
}

/// A key that was read.
#[derive(Clone, Copy)]
pub(super) struct Point<'p> {
    pub(super) key: &'p [u8],
    noted: Option<&'p Noted>,
    kept: &'p [u8],
}

impl Points {
    /// Records the value of a key.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key was absent before, or had another value.
    #[inline]
    pub(super) fn note(&mut self, key: &[u8], item: &ItemView<'_>, start: Start) -> Result<(), Error> {
        if let Some(point) = self.get(key) {
            return if point.is_of(item, start) { Ok(()) } else { Err(Error::Conflict) };
        }
        let (witness, value) = (item.witness(), item.value());
        let version = match witness.exact_version() {
            Some(version) => NotedVersion::Known(version),
            None if self.kept.len() + value.len() > KEPT_BYTES_MAX => NotedVersion::Known(item.version()),
            None => {
                if self.kept.capacity() == 0 {
                    self.kept.reserve(KEPT_BYTES_MIN);
                }
                let start = self.kept.len();
                self.kept.extend_from_slice(value);
                NotedVersion::OfKept(start..self.kept.len())
            }
        };
        self.by_key.insert(key, Some(Noted { witness, version }));
        Ok(())
    }

    /// Records that a key is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key had a value before.
    pub(super) fn note_absent(&mut self, key: &[u8]) -> Result<(), Error> {
        match self.by_key.get(key) {
            Some(Some(_)) => Err(Error::Conflict),
            Some(None) => Ok(()),
            None => {
                self.by_key.insert(key, None);
                Ok(())
            }
        }
    }

    fn get<'p>(&'p self, key: &'p [u8]) -> Option<Point<'p>> {
        self.by_key.get(key).map(|noted| Point { key, noted: noted.as_ref(), kept: &self.kept })
    }

    /// Calls `each` with the keys that were read.
    #[inline]
    pub(super) fn for_each<'p>(&'p self, mut each: impl FnMut(Point<'p>)) {
        self.by_key.for_each(|key, noted| each(Point { key, noted: noted.as_ref(), kept: &self.kept }));
    }

    /// Returns the keys that were read.
    pub(super) fn iter(&self) -> impl Iterator<Item = Point<'_>> {
        let kept = &self.kept;
        self.by_key.iter().map(move |(key, noted)| Point { key, noted: noted.as_ref(), kept })
    }
}

impl Point<'_> {
    pub(super) fn is_absent(self) -> bool {
        self.noted.is_none()
    }

    /// Returns the witness of the value; `None` if the key was absent.
    pub(super) fn witness(self) -> Option<Witness> {
        self.noted.map(|noted| noted.witness)
    }

    /// Returns the version of the value, for a key with this stored form; `None` if the key was absent.
    fn version(self, stored: &[u8]) -> Option<Version> {
        self.noted.map(|noted| match &noted.version {
            NotedVersion::Known(version) => *version,
            NotedVersion::OfKept(place) => noted.witness.version(stored, &self.kept[place.clone()]),
        })
    }

    /// Returns the state that the key must have at the commit. By witnesses, this state says nothing once `start` is
    /// not recent any more.
    pub(super) fn required(self, stored: &[u8], by: Judged) -> Required {
        match (self.witness(), by) {
            (Some(witness), Judged::ByWitness(start)) => Required::Read(witness, start),
            _ => self.version(stored).into(),
        }
    }

    /// Returns true if the item, of the same key, has the value that was read.
    pub(super) fn is_of(self, item: &ItemView<'_>, start: Start) -> bool {
        self.witness() == Some(item.witness()) && start.is_recent()
            || self.version(item.stored_key()) == Some(item.version())
    }
}

/// The way in which a batch judges the values that were read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judged {
    ByWitness(Start),
    ByVersion,
}
