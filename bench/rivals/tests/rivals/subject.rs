//! A table on a crash medium. Scripts' keys are shorter than the table's, whose last byte holds the length.

use pmem_sim::Sim;
use rivals::{Error, KEY_BYTES, Table};
use testkit::{Failure, Operations, Subject};

/// So few slots that some dozens of keys crowd them.
pub(crate) const SLOT_COUNT: u64 = 96;

/// Returns a key of the right length.
pub(crate) fn key(i: u32) -> Vec<u8> {
    format!("a key of 16 {i:04}").into_bytes()
}

pub(crate) fn padded(key: &[u8]) -> [u8; KEY_BYTES] {
    let mut padded = [0; KEY_BYTES];
    padded[..key.len()].copy_from_slice(key);
    assert!(key.len() < KEY_BYTES, "the key has no space for its length");
    padded[KEY_BYTES - 1] = key.len() as u8;
    padded
}

pub(crate) fn unpadded(key: &[u8]) -> &[u8] {
    &key[..usize::from(key[KEY_BYTES - 1])]
}

/// A table that is crashed.
pub(crate) struct Crashed<T>(pub(crate) T);

fn failure(error: Error) -> Failure {
    match error {
        Error::Full => Failure::Full,
        Error::Unformatted => Failure::Unfinished,
        other => Failure::Other(other.to_string()),
    }
}

impl<T: Table<Sim>> Operations for Crashed<T> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut value = None;
        self.0.get(&padded(key), |found| value = Some(found.to_vec()));
        Ok(value)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.0.put(&padded(key), value).map_err(failure)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.0.delete(&padded(key)).map_err(failure)
    }

    /// None of the tables can be cleared atomically.
    fn clear(&self) -> Result<(), Failure> {
        Err(Failure::Full)
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.0.len())
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.0.for_each(&mut |key, value| each(unpadded(key), value));
        Ok(())
    }
}

impl<T: Table<Sim> + Send + Sync + 'static> Subject for Crashed<T> {
    type Medium = Sim;

    fn format(medium: Sim) -> Result<Crashed<T>, Failure> {
        T::format(medium, SLOT_COUNT.max(T::SLOT_COUNT_MIN)).map(Crashed).map_err(failure)
    }

    fn open(medium: Sim) -> Result<Crashed<T>, Failure> {
        T::open(medium).map(Crashed).map_err(failure)
    }
}
