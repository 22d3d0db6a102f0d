//! What the explorer and the conformance suite need of a store: every operation with its answer, on a medium that is stopped between two
//! steps. A store under measurement is `bench::Subject`, which has fewer operations and no answers but values; the two share nothing but
//! the word, since what is measured must not be asked through a `dyn` call and copies, and what is crashed must.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};

use pmem_sim::Crashable;

/// What a store holds: values by key.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Why a store refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The medium holds no store, or one whose format did not finish: formatting is in order.
    Unfinished,
    /// The medium is full. Nothing has changed.
    Full,
    /// Anything else, in the store's own words.
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

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards greater keys.
    Forward,
    /// Towards lesser ones.
    Backward,
}

/// Is shown a key and its value, and says whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A value that a key gets, and until when, in milliseconds, if it expires; or none.
pub type Lasting<'a> = Option<(&'a [u8], Option<u64>)>;

/// A key-value store, as tests use it.
pub trait Operations {
    /// The key's value.
    ///
    /// # Errors
    /// Whatever the store says.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure>;

    /// The same for interposed readers, which come while another operation is between two steps on the same thread, so
    /// that no lock may be waited for that writers hold; `None` where one would be. A store whose readers take no lock has
    /// nothing to say here.
    ///
    /// # Errors
    /// Whatever the store says.
    fn try_get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        self.get(key).map(Some)
    }

    /// The keys' values.
    ///
    /// # Errors
    /// Whatever the store says.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Sets the key's value.
    ///
    /// # Errors
    /// [`Failure::Full`], or whatever the store says.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Sets several keys' values, as one after the other would.
    ///
    /// # Errors
    /// [`Failure::Full`], or whatever the store says. Some may have been set.
    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Failure> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Removes several keys, as one after the other would; says of each whether it was there.
    ///
    /// # Errors
    /// Whatever the store says. Some may have been removed.
    fn multi_delete(&self, keys: &[&[u8]]) -> Result<Vec<bool>, Failure> {
        keys.iter().map(|key| self.delete(key)).collect()
    }

    /// Sets several keys' values, or removes them where there is none, as one step; the last change of a key counts.
    ///
    /// # Errors
    /// [`Failure::Full`], and nothing has changed; or whatever the store says, which by default is that it cannot.
    fn batch(&self, _changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        Err(Failure::Other("this store has no batches".into()))
    }

    /// As [`Operations::batch`], if these keys hold these values, or none; says whether they did.
    ///
    /// # Errors
    /// As those of [`Operations::batch`].
    fn batch_if(
        &self,
        _expected: &[(&[u8], Option<&[u8]>)],
        _changes: &[(&[u8], Option<&[u8]>)],
    ) -> Result<bool, Failure> {
        Err(Failure::Other("this store has no batches with conditions".into()))
    }

    /// As [`Operations::batch`], of keys that may expire.
    ///
    /// # Errors
    /// As those of [`Operations::batch`].
    fn batch_expiring(&self, _changes: &[(&[u8], Lasting<'_>)]) -> Result<(), Failure> {
        Err(Failure::Other("this store has no batches of keys that expire".into()))
    }

    /// Removes the key; says whether it was there.
    ///
    /// # Errors
    /// Whatever the store says.
    fn delete(&self, key: &[u8]) -> Result<bool, Failure>;

    /// Gives the key the value `new`, or none, if it holds `expected`, or none; says whether it did.
    ///
    /// # Errors
    /// [`Failure::Full`], or whatever the store says.
    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let _ = (key, expected, new);
        Err(Failure::Other("the store cannot compare and swap".into()))
    }

    /// Sets the value of a key that expires then, in milliseconds. From now on everything shows it as [`crate::expiring`]
    /// does.
    ///
    /// # Errors
    /// [`Failure::Full`], or whatever the store says.
    fn put_expiring(&self, key: &[u8], value: &[u8], at_ms: u64) -> Result<(), Failure> {
        let _ = (key, value, at_ms);
        Err(Failure::Other("the store's keys do not expire".into()))
    }

    /// Lets the key expire then, or never; says whether it was there.
    ///
    /// # Errors
    /// [`Failure::Full`], or whatever the store says.
    fn expire(&self, key: &[u8], at_ms: Option<u64>) -> Result<bool, Failure> {
        let _ = (key, at_ms);
        Err(Failure::Other("the store's keys do not expire".into()))
    }

    /// Shows keys with their values in order, beginning at `from`. False, and nothing shown, if the store keeps no order.
    ///
    /// # Errors
    /// Whatever the store says.
    fn scan(&self, _from: Bound<&[u8]>, _direction: Direction, _each: &mut Visit<'_>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Removes every key.
    ///
    /// # Errors
    /// Whatever the store says.
    fn clear(&self) -> Result<(), Failure>;

    /// Gives back what space can be given back; the contents stay as they are.
    ///
    /// # Errors
    /// Whatever the store says.
    fn compact(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// How many keys there are.
    ///
    /// # Errors
    /// Whatever the store says.
    fn len(&self) -> Result<u64, Failure>;

    /// True if there is no key.
    ///
    /// # Errors
    /// Whatever the store says.
    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.len()? == 0)
    }

    /// Shows every key with its value, in any order.
    ///
    /// # Errors
    /// Whatever the store says.
    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure>;

    /// The damage that the store's own checker finds, each in its words; empty for a sound store.
    ///
    /// # Errors
    /// Whatever the store says.
    fn check(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

/// How a store's space is accounted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// What the store holds as used by items.
    pub live_bytes: u64,
    /// What its contents need.
    pub needed_bytes: u64,
}

/// A store on the crash medium. It must be deterministic: the same calls make the same steps, so a random hash seed or
/// identity is fixed here, and background work runs only in [`Subject::settle`].
pub trait Subject: Operations + Sized + Send + Sync + 'static {
    /// What it lies on: [`pmem_sim::Sim`], or [`pmem_sim::SimDisk`] with a journal between.
    type Medium: Crashable;

    /// Makes an empty store, whatever the medium holds.
    ///
    /// # Errors
    /// [`Failure::Full`], or whatever the store says.
    fn format(medium: Self::Medium) -> Result<Self, Failure>;

    /// Opens and recovers a store.
    ///
    /// # Errors
    /// [`Failure::Unfinished`] if the medium holds none; otherwise whatever the store says.
    fn open(medium: Self::Medium) -> Result<Self, Failure>;

    /// As [`Subject::open`], for reading alone, on a medium that is frozen; `None` if the store cannot be opened so.
    fn open_to_read(_medium: Self::Medium) -> Option<Result<Self, Failure>> {
        None
    }

    /// Whether it has snapshots. They end with the store's process.
    fn has_snapshots(&self) -> bool {
        false
    }

    /// Sets the time, in milliseconds, for all stores of this thread.
    fn set_time(_now_ms: u64) {}

    /// Closes the store in an orderly way.
    ///
    /// # Errors
    /// Whatever the store says.
    fn close(self) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes a snapshot, and says by which number it is asked for.
    ///
    /// # Errors
    /// Whatever the store says; that it has none, if so.
    fn snapshot(&self) -> Result<u64, Failure> {
        Err(no_snapshots())
    }

    /// Ends a snapshot.
    fn release(&self, _snapshot: u64) {}

    /// As [`Operations::get`], at a snapshot.
    ///
    /// # Errors
    /// Whatever the store says.
    fn get_at(&self, _snapshot: u64, _key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Err(no_snapshots())
    }

    /// As [`Operations::for_each`], at a snapshot.
    ///
    /// # Errors
    /// Whatever the store says.
    fn for_each_at(&self, _snapshot: u64, _each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err(no_snapshots())
    }

    /// As [`Operations::scan`], at a snapshot.
    ///
    /// # Errors
    /// Whatever the store says.
    fn scan_at(
        &self,
        _snapshot: u64,
        _from: Bound<&[u8]>,
        _direction: Direction,
        _each: &mut Visit<'_>,
    ) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Runs what the store leaves to the background (sweep, retirement) to its end.
    ///
    /// # Errors
    /// Whatever the store says.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// The account of the settled store, if it keeps one, given what it holds. The two sums must agree, or space leaks.
    fn space(&self, _contents: &Contents) -> Option<Space> {
        None
    }
}

fn no_snapshots() -> Failure {
    Failure::Other("this store has no snapshots".into())
}
