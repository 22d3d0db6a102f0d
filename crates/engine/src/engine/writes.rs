//! Writes that do not depend on the present values.

use std::io::Read;

use super::{Identity, unsupported};
use crate::{Error, Expiry};

/// Receives the result of an item or key, by its number.
pub type OnResult<'a, T = ()> = dyn FnMut(usize, Result<T, Error>) + 'a;

/// Writes that do not depend on the present values.
pub trait Writes: Identity {
    /// Puts or replaces a value. The key then has no expiry, even if it had one before.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// As [`Writes::put`], with an expiry.
    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        if expiry.is_never() { self.put(key, value) } else { Err(unsupported(self.name(), "keys that expire")) }
    }

    /// Fetches everything that writes of these keys will need into the processor's caches, all at the same time. A
    /// hint, which changes nothing.
    fn prefetch(&self, _keys: &[&[u8]]) {}

    /// Puts or replaces several values: as [`Writes::put`] for each, but faster (HiKV paper, section 6: future work).
    /// The call is not atomic: after an error or a crash some of the items may have been put.
    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// As [`Writes::multi_put`], and calls `on_result` once per item with its result. A failed item does not stop the
    /// others. No item is put twice, so a value that readers have seen replaced does not return.
    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        items.iter().enumerate().for_each(|(number, (key, value))| on_result(number, self.put(key, value)));
    }

    /// As [`Writes::multi_put`] of different keys into a store that is not yet in use: it is complete only when all
    /// items are written. Uses the method with the least work per item.
    fn fill(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.multi_put(items)
    }

    /// Puts or replaces a value of `len_bytes` read from `source`; nothing changes if the source ends early.
    fn put_from(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read) -> Result<(), Error> {
        self.put_from_until(key, len_bytes, source, Expiry::NEVER)
    }

    /// As [`Writes::put_from`], with an expiry.
    fn put_from_until(
        &self,
        _key: &[u8],
        _len_bytes: u64,
        _source: &mut dyn Read,
        _expiry: Expiry,
    ) -> Result<(), Error> {
        Err(unsupported(self.name(), "values that are read from a source"))
    }

    /// Deletes the key; returns false if it was absent.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Deletes several keys: as [`Writes::delete`] for each, but faster. Calls `on_result` once per key, with true if
    /// the key was present. The call is not atomic; a failed key does not stop the others, and no key is deleted twice.
    fn multi_delete_each(&self, keys: &[&[u8]], on_result: &mut OnResult<'_, bool>) {
        keys.iter().enumerate().for_each(|(number, key)| on_result(number, self.delete(key)));
    }

    /// Deletes every key in one step.
    ///
    /// # Errors
    /// [`Error::SnapshotLive`]: nothing has changed.
    fn clear(&self) -> Result<(), Error>;
}
