//! Reading values by key.

use engine::{Limits, Ttl};

use super::Tree;
use crate::handles::Kind;
use crate::in_place::InPlace;
use crate::{Error, TreeStats, Value, ValueReader, VersionedValue};
#[cfg(doc)]
use crate::{PutOptions, WriteBatch};

impl Tree {
    /// Returns the number of keys. Expired keys count until their space is freed, within about a second. Just after
    /// open, this waits until all keys are counted. In a store with named trees, the first call for any tree visits
    /// all keys of the store, some thousand at a time, and writers wait for each such part; later calls visit none.
    /// Exceptions: InK visits all keys for the tree without a name, and a first call within a callback of a write or
    /// the body of a transaction visits all keys, and counts no expired ones. It also waits until deferred writes of
    /// other threads are durable, as every read does.
    ///
    /// # Errors
    /// [`Error::Medium`] after a failed sync: the count could include writes that are lost. [`Error::Corrupt`] if the
    /// store is damaged.
    pub fn len(&self) -> Result<u64, Error> {
        let count = self.keyspace.len()?;
        self.inner().journal.as_ref().map_or(Ok(()), |journal| journal.acknowledge_met())?;
        Ok(count)
    }

    /// Returns the tree's figures, without visiting keys.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let jobs = store.tree("jobs")?;
    /// jobs.put("1", "resize cat.png")?;
    /// assert_eq!(jobs.stats()?.items, None);
    /// assert_eq!(jobs.len()?, 1); // counts the keys of all trees
    /// jobs.put("2", "resize dog.png")?;
    /// assert_eq!(jobs.stats()?.items, Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::len`].
    pub fn stats(&self) -> Result<TreeStats, Error> {
        Ok(TreeStats { items: self.keyspace.counted()? })
    }

    /// Returns true if there is no key.
    ///
    /// # Errors
    /// As for [`Tree::len`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Returns a copy of the key's value, or `None` if the key is absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("name", "ada")?;
    /// assert_eq!(store.get("name")?.as_deref(), Some(&b"ada"[..]));
    /// assert_eq!(store.get("age")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the item is damaged. [`Error::Medium`] if the value waits for a sync that fails.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        self.keyspace.read(|in_place| in_place.get(key, Value::copied))
    }

    /// Like [`Tree::get`], and returns the value with its expiry and its version, all of one moment. The version is for
    /// [`PutOptions::expect_version`] and [`WriteBatch::expect_version`]; most engines read all of the value again to
    /// compute it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Expiry, PutOptions};
    ///
    /// store.put("door", "open")?;
    /// let door = store.get_item("door")?.expect("it was just put");
    /// assert_eq!(door.value, "open");
    /// assert_eq!(door.expiry, Expiry::NEVER);
    /// store.put_with("door", "shut", PutOptions::new().expect_version(door.version))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_item(&self, key: impl AsRef<[u8]>) -> Result<Option<VersionedValue>, Error> {
        self.keyspace.read(|in_place| in_place.get_item(key, VersionedValue::copied))
    }

    /// Copies the key's value into `value`, replacing its contents. Returns false and an empty `value` if the key is
    /// absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let mut value = Vec::new();
    /// store.put("name", "ada")?;
    /// assert!(store.get_into("name", &mut value)? && value == b"ada");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        let found = self.keyspace.read(|in_place| in_place.get(key, |found| value.extend_from_slice(found)))?;
        Ok(found.is_some())
    }

    /// Returns copies of several keys' values, in the order of the keys. Memory accesses overlap, so this is several
    /// times faster than successive `get`s.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let values = store.multi_get(["two", "three"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"zwei"[..]));
    /// assert_eq!(values[1], None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Value>>, Error> {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut values = Vec::with_capacity(keys.len());
        self.keyspace.read(|in_place| in_place.multi_get(&keys, |_, value| values.push(value.map(Value::copied))))?;
        Ok(values)
    }

    /// Returns reads that pass a value in place, without a copy.
    #[inline(always)]
    #[must_use]
    pub fn in_place(&self) -> InPlace<'_> {
        self.keyspace.in_place()
    }

    /// Returns the key's remaining time to live, or `None` if the key is absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Expires, Ttl};
    /// use std::time::Duration;
    ///
    /// assert_eq!(store.ttl("key")?, None);
    /// store.put("key", "value")?;
    /// assert_eq!(store.ttl("key")?, Some(Ttl::Unlimited));
    /// store.expire("key", Duration::from_secs(60))?;
    /// assert!(matches!(store.ttl("key")?, Some(Ttl::Left(left)) if left > Duration::from_secs(50)));
    /// store.expire("key", Expires::Never)?;
    /// assert_eq!(store.ttl("key")?, Some(Ttl::Unlimited));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Ttl>, Error> {
        let engine = self.inner().engine()?;
        let expiry = self.keyspace.with_key(key.as_ref(), |key| engine.expiry(key))?;
        Ok(expiry.map(|expiry| engine.clock().left(expiry)))
    }

    /// Returns a reader of the key's value, for values too large to copy in one step, or `None` if the key is absent.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>, Error> {
        self.keyspace.with_key(key.as_ref(), |key| {
            let mut found = None;
            self.inner().engine()?.get(key, &mut |witness, _, value| {
                let held = (value.len() <= Limits::MOVED_VALUE_BYTES_MAX).then(|| value.to_vec());
                found = Some((witness, value.len() as u64, held));
            })?;
            let reader = |(witness, len, held)| ValueReader::new(self.held_by(Kind::Reader), key, witness, len, held);
            Ok(found.map(reader))
        })
    }

    /// Returns true if the key exists.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// assert!(!store.contains("name")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.keyspace.read(|in_place| Ok(in_place.get_part(key, |_| ())?.is_some()))
    }
}
