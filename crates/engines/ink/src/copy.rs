//! Values copied under a lock, into memory that each thread reuses.

use std::cell::Cell;

use engine::{Error, Expiry, Witness};
use heap::Place;
use pbtree::Value;

thread_local! {
    /// The memory of the last copy; empty while a copy is in use.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The most bytes of it that a thread keeps.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A copy of a key's value, used outside the lock.
pub(crate) struct Copy {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expiry: Expiry,
    pub(crate) stamp: u64,
    /// The value's place.
    pub(crate) place: Place,
}

/// Returns a value's expiry.
pub(crate) fn expiry_of(value: &Value<'_>) -> Expiry {
    expiry(value.expiry)
}

/// Converts a tree's expiry.
pub(crate) fn expiry(at_ms: Option<u64>) -> Expiry {
    at_ms.map_or(Expiry::NEVER, Expiry::at_ms)
}

/// Returns the witness that identifies this value among its key's values.
pub(crate) fn witness_of(value: &Value<'_>) -> Witness {
    witness(value.stamp)
}

/// A stamp identifies the value, because stamps never repeat.
fn witness(stamp: u64) -> Witness {
    Witness::exact([stamp, 0])
}

impl Copy {
    /// Copies a value.
    pub(crate) fn of(value: &Value<'_>) -> Copy {
        // A thread that ends may read behind the destructor of its spare memory.
        let mut bytes = SPARE.try_with(Cell::take).unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(value.bytes);
        Copy { bytes, expiry: expiry_of(value), stamp: value.stamp, place: value.place }
    }

    pub(crate) fn witness(&self) -> Witness {
        witness(self.stamp)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if self.bytes.capacity() <= KEPT_BYTES_MAX {
            let _ = SPARE.try_with(|spare| spare.set(std::mem::take(&mut self.bytes)));
        }
    }
}

/// Refuses a value whose checksum does not fit.
pub(crate) fn check_intact(value: &Value<'_>) -> Result<(), Error> {
    match value.is_intact() {
        true => Ok(()),
        false => Err(does_not_fit(value.place.offset.0)),
    }
}

/// Returns the error for a value at `offset` whose checksum does not fit.
pub(crate) fn does_not_fit(offset: u64) -> Error {
    Error::Corrupt { offset, what: "a value's checksum does not fit" }
}
