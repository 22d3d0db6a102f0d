//! The interface between a store and the explorer or the conformance suite: every operation with its answer, on a
//! medium that can be stopped between two steps.
//!
//! A store under measurement implements `bench::Subject` instead, which has fewer operations and returns only values.
//! The two traits are separate because the tests call stores through `dyn` and copy values, and a measured call must
//! not pay for either.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};

use pmem_sim::Crashable;

/// The contents of a store: values by key.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The reason why a store refused an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The medium holds no store, or one whose format did not finish: it may be formatted.
    Unfinished,
    /// The medium is full. Nothing has changed.
    Full,
    /// Any other error, as the store's text.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unfinished => f.write_str("there is no finished store"),
            Failure::Full => f.write_str("the medium is full"),
            Failure::Other(what) => f.write_str(what),
        }
    }
}

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards greater keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

/// A callback that receives a key and its value and returns whether to continue.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A new value with an expiry time in milliseconds, if any; `None` deletes the key.
pub type Lasting<'a> = Option<(&'a [u8], Option<u64>)>;

/// A key-value store as tests use it.
pub trait Operations {
    /// Returns the key's value.
    ///
    /// # Errors
    /// Any error of the store.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure>;

    /// Returns the key's value for a visitor, or `None` if the lookup would have to wait for a lock.
    ///
    /// Visitors run on the thread whose operation is between two steps, so they must not wait for a lock that a writer
    /// holds. A store whose readers take no lock needs no implementation.
    ///
    /// # Errors
    /// Any error of the store.
    fn try_get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        self.get(key).map(Some)
    }

    /// Returns the keys' values.
    ///
    /// # Errors
    /// Any error of the store.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Sets the key's value.
    ///
    /// # Errors
    /// [`Failure::Full`], or any other error of the store.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Sets the values of several keys, with the same result as one put after the other.
    ///
    /// # Errors
    /// [`Failure::Full`], or any other error of the store. Some keys may have been set.
    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Failure> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Removes several keys, with the same result as one delete after the other; returns for each whether it existed.
    ///
    /// # Errors
    /// Any error of the store. Some keys may have been removed.
    fn multi_delete(&self, keys: &[&[u8]]) -> Result<Vec<bool>, Failure> {
        keys.iter().map(|key| self.delete(key)).collect()
    }

    /// Sets or removes (`None`) several keys atomically; the last change of a key counts.
    ///
    /// # Errors
    /// [`Failure::Full`], and nothing has changed; or any other error of the store. The default implementation fails.
    fn batch(&self, _changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        Err(Failure::Other("this store has no batches".into()))
    }

    /// Like [`Operations::batch`], but only if these keys hold these values or are absent; returns whether they did.
    ///
    /// # Errors
    /// As for [`Operations::batch`].
    fn batch_if(
        &self,
        _expected: &[(&[u8], Option<&[u8]>)],
        _changes: &[(&[u8], Option<&[u8]>)],
    ) -> Result<bool, Failure> {
        Err(Failure::Other("this store has no batches with conditions".into()))
    }

    /// Like [`Operations::batch`], with expiry times.
    ///
    /// # Errors
    /// As for [`Operations::batch`].
    fn batch_expiring(&self, _changes: &[(&[u8], Lasting<'_>)]) -> Result<(), Failure> {
        Err(Failure::Other("this store has no batches of keys that expire".into()))
    }

    /// Removes the key; returns whether it existed.
    ///
    /// # Errors
    /// Any error of the store.
    fn delete(&self, key: &[u8]) -> Result<bool, Failure>;

    /// Changes the key's value to `new` if it holds `expected`, where `None` means absent; returns whether it did.
    ///
    /// # Errors
    /// [`Failure::Full`], or any other error of the store.
    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let _ = (key, expected, new);
        Err(Failure::Other("the store cannot compare and swap".into()))
    }

    /// Sets the key's value with an expiry time in milliseconds. From then on every read returns the value in the form
    /// of [`crate::expiring`].
    ///
    /// # Errors
    /// [`Failure::Full`], or any other error of the store.
    fn put_expiring(&self, key: &[u8], value: &[u8], at_ms: u64) -> Result<(), Failure> {
        let _ = (key, value, at_ms);
        Err(Failure::Other("the store's keys do not expire".into()))
    }

    /// Sets the key's expiry time in milliseconds, or removes it; returns whether the key existed.
    ///
    /// # Errors
    /// [`Failure::Full`], or any other error of the store.
    fn expire(&self, key: &[u8], at_ms: Option<u64>) -> Result<bool, Failure> {
        let _ = (key, at_ms);
        Err(Failure::Other("the store's keys do not expire".into()))
    }

    /// Calls `each` with the keys and values in order, beginning at `from`. Returns false without a call if the store
    /// keeps no order.
    ///
    /// # Errors
    /// Any error of the store.
    fn scan(&self, _from: Bound<&[u8]>, _direction: Direction, _each: &mut Visit<'_>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Removes every key.
    ///
    /// # Errors
    /// Any error of the store.
    fn clear(&self) -> Result<(), Failure>;

    /// Runs a compaction, which frees space and leaves the contents unchanged.
    ///
    /// # Errors
    /// Any error of the store.
    fn compact(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the number of keys.
    ///
    /// # Errors
    /// Any error of the store.
    fn len(&self) -> Result<u64, Failure>;

    /// Returns true if there is no key.
    ///
    /// # Errors
    /// Any error of the store.
    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.len()? == 0)
    }

    /// Calls `each` with every key and its value, in any order.
    ///
    /// # Errors
    /// Any error of the store.
    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure>;

    /// Returns the damage that the store's own checker finds, a text for each; empty for a sound store.
    ///
    /// # Errors
    /// Any error of the store.
    fn check(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

/// A comparison of a store's space with the need of its contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes that the store counts as used by items.
    pub live_bytes: u64,
    /// Bytes that its contents need.
    pub needed_bytes: u64,
}

/// A store on the crash medium.
///
/// It must be deterministic: the same calls make the same steps. So a hash seed or an identity that is random elsewhere
/// is fixed here, and background work runs only in [`Subject::settle`].
pub trait Subject: Operations + Sized + Send + Sync + 'static {
    /// The medium: [`pmem_sim::Sim`], or [`pmem_sim::SimDisk`] with a journal in between.
    type Medium: Crashable;

    /// Creates an empty store, whatever the medium holds.
    ///
    /// # Errors
    /// [`Failure::Full`], or any other error of the store.
    fn format(medium: Self::Medium) -> Result<Self, Failure>;

    /// Opens and recovers a store.
    ///
    /// # Errors
    /// [`Failure::Unfinished`] if the medium holds no store; or any other error of the store.
    fn open(medium: Self::Medium) -> Result<Self, Failure>;

    /// Like [`Subject::open`], but only for reading, on a frozen medium. Returns `None` if the store has no such mode.
    fn open_to_read(_medium: Self::Medium) -> Option<Result<Self, Failure>> {
        None
    }

    /// Returns true if the store has snapshots. They end with the store's process.
    fn has_snapshots(&self) -> bool {
        false
    }

    /// Sets the clock of all stores of this thread, in milliseconds.
    fn set_time(_now_ms: u64) {}

    /// Closes the store cleanly.
    ///
    /// # Errors
    /// Any error of the store.
    fn close(self) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes a snapshot and returns its number.
    ///
    /// # Errors
    /// Any error of the store; also if it has no snapshots.
    fn snapshot(&self) -> Result<u64, Failure> {
        Err(no_snapshots())
    }

    /// Releases a snapshot.
    fn release(&self, _snapshot: u64) {}

    /// Like [`Operations::get`], at a snapshot.
    ///
    /// # Errors
    /// Any error of the store.
    fn get_at(&self, _snapshot: u64, _key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Err(no_snapshots())
    }

    /// Like [`Operations::for_each`], at a snapshot.
    ///
    /// # Errors
    /// Any error of the store.
    fn for_each_at(&self, _snapshot: u64, _each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err(no_snapshots())
    }

    /// Like [`Operations::scan`], at a snapshot.
    ///
    /// # Errors
    /// Any error of the store.
    fn scan_at(
        &self,
        _snapshot: u64,
        _from: Bound<&[u8]>,
        _direction: Direction,
        _each: &mut Visit<'_>,
    ) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Runs the store's background work (sweep, retirement) to its end.
    ///
    /// # Errors
    /// Any error of the store.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the space of the settled store, if it keeps count, given its contents. The two numbers must agree;
    /// otherwise space leaks.
    fn space(&self, _contents: &Contents) -> Option<Space> {
        None
    }
}

fn no_snapshots() -> Failure {
    Failure::Other("this store has no snapshots".into())
}
