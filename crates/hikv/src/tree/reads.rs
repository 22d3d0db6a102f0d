//! Reading values by key.

use std::array;

use engine::{Engine, Expiry, Limits, Lookup, Ttl, Version, Witness, empty_buffer};

use super::Tree;
#[cfg(doc)]
use crate::WriteBatch;
use crate::handles::Kind;
use crate::{Error, ValueReader};

/// Keys that one call looks up or writes together. A multiple of each engine's group size.
pub(crate) const BATCH_COUNT: usize = 64;
/// Keys of one lookup group: about as many as a core has cache misses in flight.
const GROUP_COUNT: usize = 16;

impl Tree {
    /// Returns the number of keys. Expired keys count until their space is freed, within about a second. Just after
    /// open, this waits until all keys are counted. It also waits until deferred writes of other threads are durable,
    /// as every read does.
    ///
    /// # Errors
    /// [`Error::Medium`] after a failed sync: the count could include writes that are lost. [`Error::Corrupt`] if the
    /// store is damaged.
    pub fn len(&self) -> Result<u64, Error> {
        let count = self.engine()?.len()?;
        self.inner.journal.as_ref().map_or(Ok(()), |journal| journal.acknowledge_met())?;
        Ok(count)
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
    /// # Errors
    /// [`Error::Corrupt`] if the item is damaged. [`Error::Medium`] if the value waits for a sync that fails.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Like [`Tree::get`], and returns the version for [`WriteBatch::expect_version`].
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_versioned(&self, key: impl AsRef<[u8]>) -> Result<Option<(Version, Vec<u8>)>, Error> {
        self.get_versioned_with(key, |version, value| (version, value.to_vec()))
    }

    /// Like [`Tree::get_with`], and passes the version to `read`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("door", "open")?;
    /// let seen = store.get_versioned_with("door", |version, _| version)?;
    /// store.put("door", "shut")?;
    /// assert_ne!(store.get_versioned_with("door", |version, _| version)?, seen);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_versioned_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(Version, &[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (key, mut read, mut result) = (key.as_ref(), Some(read), None);
        let mut found = |witness: Witness, value: &[u8]| {
            result = read.take().map(|read| read(witness.version(key, value), value));
        };
        self.engine()?.get(key, &mut found)?;
        Ok(result)
    }

    /// Like [`Tree::get_part_with`], and passes the version to `read`. The version depends on the entire value, so all
    /// of it is read.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn get_part_versioned_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(Version, &[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (key, mut read, mut result) = (key.as_ref(), Some(read), None);
        let mut found = |witness: Witness, value: &[u8]| {
            result = read.take().map(|read| read(witness.version(key, value), value));
        };
        self.engine()?.get_part(key, &mut found)?;
        Ok(result)
    }

    /// Copies the key's value into `value`, replacing its contents. Returns false and an empty `value` if the key is
    /// absent.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        let found = self.get_with(key, |found| value.extend_from_slice(found))?;
        Ok(found.is_some())
    }

    /// Calls `read` with the key's value in place, without a copy. `read` should be quick: no space is reused while it
    /// runs.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("line", "to be or not to be")?;
    /// let words = store.get_with("line", |value| value.split(|&byte| byte == b' ').count())?;
    /// assert_eq!(words, Some(6));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    #[inline]
    pub fn get_with<R>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let engine = self.engine()?;
        if self.supports_lookup {
            let (pin, mut buffer) = (epoch::pin(), empty_buffer());
            match engine.lookup(pin.pinned(), key.as_ref(), &mut buffer).unpack() {
                Lookup::Value(value) => return Ok(Some(read(value))),
                Lookup::Absent => return Ok(None),
                Lookup::Unsure => {}
            }
        }
        get_without_lookup(engine, key.as_ref(), read)
    }

    /// Like [`Tree::get_with`], for a `read` that needs only a part of the value or its length. Checksums of values
    /// longer than 4 KiB are not compared, whatever [`crate::Options::verify_reads`] is.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    #[inline]
    pub fn get_part_with<R>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let (mut read, mut result) = (Some(read), None);
        self.engine()?.get_part(key.as_ref(), &mut |_, value| result = read.take().map(|read| read(value)))?;
        Ok(result)
    }

    /// Returns copies of several keys' values. Memory accesses overlap, so this is several times faster than
    /// successive `get`s.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = Vec::with_capacity(keys.len());
        self.multi_get_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// Calls `found` with each key's index and value, in the order of `keys`.
    ///
    /// # Errors
    /// As for [`Tree::get`]; `found` may have been called for some keys.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let engine = self.engine()?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let mut found = |i, value: Option<&[u8]>| found(group * GROUP_COUNT + i, value);
            // A full group's length is known at compile time.
            match keys.first_chunk::<GROUP_COUNT>() {
                Some(keys) => {
                    self.read_group(engine, &array::from_fn::<_, GROUP_COUNT, _>(|i| keys[i].as_ref()), &mut found)?
                }
                None => {
                    let mut slices = [&[][..]; GROUP_COUNT];
                    slices.iter_mut().zip(keys).for_each(|(slice, key)| *slice = key.as_ref());
                    self.read_group(engine, &slices[..keys.len()], &mut found)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the values of up to [`GROUP_COUNT`] keys.
    #[inline]
    fn read_group(
        &self,
        engine: &dyn Engine,
        keys: &[&[u8]],
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let found_count = if self.supports_lookup { lookup_group(engine, keys, found) } else { 0 };
        if found_count < keys.len() {
            engine.multi_get(&keys[found_count..], &mut |i, value| found(found_count + i, value))?;
        }
        Ok(())
    }

    /// Returns the key's expiry, [`Expiry::NEVER`] if it has none, or `None` if the key is absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Expiry;
    ///
    /// assert_eq!(store.expires_at("key")?, None);
    /// store.put("key", "value")?;
    /// assert_eq!(store.expires_at("key")?, Some(Expiry::NEVER));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>, Error> {
        self.engine()?.expiry(key.as_ref())
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
        let engine = self.engine()?;
        Ok(engine.expiry(key.as_ref())?.map(|expiry| engine.clock().left(expiry)))
    }

    /// Returns a reader of the key's value, for values too large to copy in one step, or `None` if the key is absent.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>, Error> {
        let (key, mut found) = (key.as_ref(), None);
        self.engine()?.get(key, &mut |witness, value| {
            let held = (value.len() <= Limits::MOVED_VALUE_BYTES_MAX).then(|| value.to_vec());
            found = Some((witness, value.len() as u64, held));
        })?;
        let reader = |(witness, len, held)| ValueReader::new(self.held_by(Kind::Reader), key, witness, len, held);
        Ok(found.map(reader))
    }

    /// Returns true if the key exists.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.engine()?.get_part(key.as_ref(), &mut |_, _| {})
    }
}

/// Like [`Tree::get_with`], without a lookup first.
#[inline(never)]
fn get_without_lookup<R>(engine: &dyn Engine, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
    let (mut read, mut result) = (Some(read), None);
    engine.get(key, &mut |_, value| result = read.take().map(|read| read(value)))?;
    Ok(result)
}

/// Passes the values that lookups return to `found`, up to the first unsure lookup. Returns the number of values.
#[inline(always)]
fn lookup_group(engine: &dyn Engine, keys: &[&[u8]], found: &mut impl FnMut(usize, Option<&[u8]>)) -> usize {
    let pin = epoch::pin();
    let mut values = [None; GROUP_COUNT];
    let found_count = engine.lookup_many(pin.pinned(), keys, &mut values);
    values.iter().take(found_count).enumerate().for_each(|(i, &value)| found(i, value));
    found_count
}
