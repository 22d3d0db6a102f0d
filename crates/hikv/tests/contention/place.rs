//! The directories of these tests' stores, and the store as the testkit uses it.

use std::ops::Bound;
use std::path::Path;

use hikv::{Error, MediumError, Options, Store};
use tempfile::TempDir;
use testkit::{Direction, Failure, Operations, Visit};

/// A store in a separate directory, on a memory file system if there is one.
pub(crate) struct Placed {
    pub(crate) store: Store,
    _dir: TempDir,
}

impl Placed {
    pub(crate) fn open(options: &Options) -> Placed {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.expect("a directory for a store");
        Placed { store: options.open(dir.path()).expect("a new store"), _dir: dir }
    }

    /// Asserts that the store has no damage.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.store.verify(|_| {}).expect("a check").damage, []);
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. }) => Failure::Full,
        other => Failure::Other(other.to_string()),
    }
}

impl Operations for Placed {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.store.get(key).map_err(failure)?.map(Vec::from))
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let values = self.store.multi_get(keys).map_err(failure)?;
        Ok(values.into_iter().map(|value| value.map(Vec::from)).collect())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.store.put(key, value).map_err(failure)
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let ordered = self.store.ordered().map_err(failure)?;
        let items: Box<dyn Iterator<Item = _>> = match direction {
            Direction::Forward => Box::new(ordered.range::<&[u8]>((from, Bound::Unbounded)).map_err(failure)?),
            Direction::Backward => Box::new(ordered.range::<&[u8]>((Bound::Unbounded, from)).map_err(failure)?.rev()),
        };
        for item in items {
            let (key, value) = item.map_err(failure)?;
            if each(&key, &value).is_break() {
                break;
            }
        }
        Ok(true)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.store.delete(key).map_err(failure)
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        self.store.compare_and_swap(key, expected, new).map_err(failure)
    }

    fn clear(&self) -> Result<(), Failure> {
        self.store.clear().map_err(failure)
    }

    fn len(&self) -> Result<u64, Failure> {
        self.store.len().map_err(failure)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.store.for_each(each).map(drop).map_err(failure)
    }
}
