//! PMEKV-M and PMEKV-FS: the tree of keys is in main memory; values are in main memory as well, or in a file that is
//! written and read with system calls.
//!
//! Threads share the tree, which is locked only to add a key; a key's value is locked while it is written or read. A
//! value overwrites the old one, and nothing is synced.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Error;
use crate::work::Shared;

/// The storage of values.
pub(super) trait Values: Sync {
    /// The tree's reference to a value.
    type Place: Default + Send + Sync;

    /// Writes a value to its place, or to a new one if it has none.
    fn write(&self, place: &mut Self::Place, key: &[u8], value: &[u8]) -> Result<(), Error>;
    fn read(&self, place: &Self::Place, found: &mut dyn FnMut(&[u8])) -> Result<(), Error>;
}

/// A store with its tree in main memory.
pub(super) struct HostTree<V: Values> {
    keys: RwLock<BTreeMap<Vec<u8>, RwLock<V::Place>>>,
    values: V,
}

impl HostTree<InMemory> {
    /// Creates PMEKV-M.
    pub(super) fn in_memory() -> HostTree<InMemory> {
        HostTree { keys: RwLock::default(), values: InMemory }
    }
}

impl HostTree<InFile> {
    /// Creates PMEKV-FS in an unnamed file.
    pub(super) fn in_a_file(dir: &Path) -> Result<HostTree<InFile>, Error> {
        let values = InFile { file: tempfile::tempfile_in(dir)?, end: AtomicU64::new(0) };
        Ok(HostTree { keys: RwLock::default(), values })
    }
}

impl<V: Values> Shared for HostTree<V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if let Some(place) = read(&self.keys).get(key) {
            return self.values.write(&mut write(place), key, value);
        }
        let mut place = V::Place::default();
        self.values.write(&mut place, key, value)?;
        write(&self.keys).insert(key.to_vec(), RwLock::new(place));
        Ok(())
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        match read(&self.keys).get(key) {
            Some(place) => self.values.read(&read(place), found).map(|()| true),
            None => Ok(false),
        }
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Values in main memory.
pub(super) struct InMemory;

impl Values for InMemory {
    type Place = Vec<u8>;

    fn write(&self, place: &mut Vec<u8>, _key: &[u8], value: &[u8]) -> Result<(), Error> {
        place.clear();
        place.extend_from_slice(value);
        Ok(())
    }

    fn read(&self, place: &Vec<u8>, found: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        found(place);
        Ok(())
    }
}

/// Values in a file, each next to its key.
pub(super) struct InFile {
    file: File,
    end: AtomicU64,
}

/// A record of the file; its length is 0 if there is none.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    value_at: u64,
    value_bytes: usize,
}

impl Values for InFile {
    type Place = Extent;

    fn write(&self, place: &mut Extent, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if place.value_bytes != value.len() {
            let at = self.end.fetch_add((key.len() + value.len()) as u64, Ordering::Relaxed);
            self.file.write_all_at(key, at)?;
            *place = Extent { value_at: at + key.len() as u64, value_bytes: value.len() };
        }
        Ok(self.file.write_all_at(value, place.value_at)?)
    }

    fn read(&self, place: &Extent, found: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let mut value = vec![0; place.value_bytes];
        self.file.read_exact_at(&mut value, place.value_at)?;
        found(&value);
        Ok(())
    }
}
