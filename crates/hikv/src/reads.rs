//! Looking keys up.

use std::array;

use engine::{Engine, Lookup, Version, Witness, empty_buffer};

#[cfg(doc)]
use crate::WriteBatch;
use crate::{Error, Store};

/// Keys of one call that are looked up, or written, together; an engine's own groups divide it.
pub(crate) const BATCH_COUNT: usize = 64;
/// Keys of one look: as many as a core has misses in flight, with some to spare.
const GROUP_COUNT: usize = 16;

impl Store {
    /// A copy of the key's value.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// As [`Store::get`], with the version that [`WriteBatch::expect_version`] takes.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get_versioned(&self, key: impl AsRef<[u8]>) -> Result<Option<(Version, Vec<u8>)>, Error> {
        self.get_versioned_with(key, |version, value| (version, value.to_vec()))
    }

    /// As [`Store::get_with`], for `read` that is shown the version, too.
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
    /// See [`Error`].
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

    /// As [`Store::get_part_with`], for `read` that is shown the version, too: for that all of the value is read.
    ///
    /// # Errors
    /// See [`Error`].
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

    /// Copies the key's value into `value`, in place of what was there; false, and an empty `value`, if there is none.
    ///
    /// # Errors
    /// See [`Error`].
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        let found = self.get_with(key, |found| value.extend_from_slice(found))?;
        Ok(found.is_some())
    }

    /// Shows the key's value, where it lies, to `read`. `read` should be quick: space is not reused meanwhile.
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
    /// See [`Error`].
    #[inline]
    pub fn get_with<R>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let engine = self.engine()?;
        if self.supports_lookup() {
            let (pin, mut buffer) = (epoch::pin(), empty_buffer());
            match engine.lookup(pin.pinned(), key.as_ref(), &mut buffer).unpack() {
                Lookup::Value(value) => return Ok(Some(read(value))),
                Lookup::Absent => return Ok(None),
                Lookup::Unsure => {}
            }
        }
        get_without_lookup(engine, key.as_ref(), read)
    }

    /// As [`Store::get_with`], for `read` that looks at a part of a value, or at its length: of a value longer than 4 KiB the
    /// checksum is not compared, whatever [`crate::Options::verify_reads`] says.
    ///
    /// # Errors
    /// See [`Error`].
    #[inline]
    pub fn get_part_with<R>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let (mut read, mut result) = (Some(read), None);
        self.engine()?.get_part(key.as_ref(), &mut |_, value| result = read.take().map(|read| read(value)))?;
        Ok(result)
    }

    /// Copies of several keys' values. Memory accesses overlap: several times as fast as one `get` after the other.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = Vec::with_capacity(keys.len());
        self.multi_get_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// Shows several keys' values, in the order of the keys, to `found`, with the key's number.
    ///
    /// # Errors
    /// See [`Error`]; values may have been shown by then.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let engine = self.engine()?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let mut found = |i, value: Option<&[u8]>| found(group * GROUP_COUNT + i, value);
            // Of a whole group it is known that no key is missing.
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

    /// Up to [`GROUP_COUNT`] keys' values.
    #[inline]
    fn read_group(
        &self,
        engine: &dyn Engine,
        keys: &[&[u8]],
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let found_count = if self.supports_lookup() { lookup_group(engine, keys, found) } else { 0 };
        if found_count < keys.len() {
            engine.multi_get(&keys[found_count..], &mut |i, value| found(found_count + i, value))?;
        }
        Ok(())
    }

    /// True if the key is there.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.engine()?.get_part(key.as_ref(), &mut |_, _| {})
    }
}

/// As [`Store::get_with`], without a look first.
#[inline(never)]
fn get_without_lookup<R>(engine: &dyn Engine, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
    let (mut read, mut result) = (Some(read), None);
    engine.get(key, &mut |_, value| result = read.take().map(|read| read(value)))?;
    Ok(result)
}

/// Shows the values that a look suffices for, up to the first key that it does not suffice for: how many were shown.
#[inline(always)]
fn lookup_group(engine: &dyn Engine, keys: &[&[u8]], found: &mut impl FnMut(usize, Option<&[u8]>)) -> usize {
    let pin = epoch::pin();
    let mut values = [None; GROUP_COUNT];
    let found_count = engine.lookup_many(pin.pinned(), keys, &mut values);
    values.iter().take(found_count).enumerate().for_each(|(i, &value)| found(i, value));
    found_count
}
