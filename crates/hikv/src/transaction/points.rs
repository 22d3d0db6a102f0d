//! The keys that an attempt has read, and the identities of their values.
//!
//! While the attempt is recent ([`Start`]), place and checksum identify a value, at no cost. Later only a version does,
//! which is a hash of the value as it was read. Few attempts get that old, so the hash is computed when it is needed,
//! from a copy of the value. Values that would take too much memory are hashed at once.

use std::collections::BTreeMap;
use std::ops::Range;

use engine::{Error, Required, Version, Witness};
use epoch::Start;

use crate::ItemView;

/// Bytes of values that are kept for each tree, instead of their hashes.
const KEPT_BYTES_MAX: usize = 1 << 16;

/// Points that are searched one by one.
const FEW_COUNT_MAX: usize = 16;

/// The identity of a value that was read.
#[derive(Clone, Debug)]
struct Noted {
    witness: Witness,
    version: NotedVersion,
}

#[derive(Clone, Debug)]
enum NotedVersion {
    Known(Version),
    /// Its value is this part of the bytes.
    OfKept(Range<usize>),
}

/// A key, as a part of the bytes, and the identity of its value, `None` if the key was absent.
#[derive(Clone, Debug)]
struct Read {
    key: Range<usize>,
    noted: Option<Noted>,
}

/// The keys that were read in one tree, in the order of their first reads.
#[derive(Debug, Default)]
pub(super) struct Points {
    reads: Vec<Read>,
    /// The reads by key, if they are many.
    by_key: BTreeMap<Box<[u8]>, usize>,
    /// Keys, and values whose versions may be needed.
    bytes: Vec<u8>,
    kept_bytes: usize,
}

/// A key that was read.
#[derive(Clone, Copy)]
pub(super) struct Point<'p> {
    pub(super) key: &'p [u8],
    noted: Option<&'p Noted>,
    bytes: &'p [u8],
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
            None if self.kept_bytes + value.len() > KEPT_BYTES_MAX => NotedVersion::Known(item.version()),
            None => {
                self.kept_bytes += value.len();
                NotedVersion::OfKept(self.keep(value))
            }
        };
        self.push(key, Some(Noted { witness, version }));
        Ok(())
    }

    /// Records that a key is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key had a value before.
    pub(super) fn note_absent(&mut self, key: &[u8]) -> Result<(), Error> {
        match self.get(key) {
            Some(point) if point.is_absent() => Ok(()),
            Some(_) => Err(Error::Conflict),
            None => {
                self.push(key, None);
                Ok(())
            }
        }
    }

    fn push(&mut self, key: &[u8], noted: Option<Noted>) {
        if self.reads.len() == FEW_COUNT_MAX {
            self.by_key = self.iter().enumerate().map(|(number, point)| (point.key.into(), number)).collect();
        }
        if self.reads.len() >= FEW_COUNT_MAX {
            self.by_key.insert(key.into(), self.reads.len());
        }
        let key = self.keep(key);
        self.reads.push(Read { key, noted });
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn get(&self, key: &[u8]) -> Option<Point<'_>> {
        match self.reads.len() {
            0..=FEW_COUNT_MAX => self.iter().find(|point| point.key == key),
            _ => self.by_key.get(key).map(|&number| self.point(&self.reads[number])),
        }
    }

    fn point<'p>(&'p self, read: &'p Read) -> Point<'p> {
        Point { key: &self.bytes[read.key.clone()], noted: read.noted.as_ref(), bytes: &self.bytes }
    }

    /// Returns the keys in the order of their first reads.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Point<'_>> + ExactSizeIterator {
        self.reads.iter().map(|read| self.point(read))
    }

    /// Forgets all keys, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.by_key.clear();
        self.bytes.clear();
        self.kept_bytes = 0;
    }

    /// Returns the bytes of memory that it keeps.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.reads.capacity() * size_of::<Read>()
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
            NotedVersion::OfKept(place) => noted.witness.version(stored, &self.bytes[place.clone()]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_found_however_many_there_are() {
        let mut points = Points::default();
        for round in 0..2 {
            for number in 0..100_u8 {
                let key = vec![number; usize::from(number) % 50];
                let is_new = points.get(&key).is_none();
                points.note_absent(&key).unwrap();
                assert!(points.get(&key).is_some_and(|point| point.key == key && point.is_absent()));
                // Two keys are empty.
                assert_eq!(is_new, round == 0 && number != 50, "{number}");
            }
            assert!(points.get(b"absent").is_none() && points.iter().len() == 99);
            assert_eq!(points.iter().next_back().unwrap().key, [99; 49]);
        }
        points.clear();
        assert!(points.get(&[7; 7]).is_none() && points.iter().len() == 0 && points.memory_bytes() > 0);
    }
}
