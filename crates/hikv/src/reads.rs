//! Looking keys up.

use engine::Version;

#[cfg(doc)]
use crate::WriteBatch;
use crate::{Error, Store};

/// Keys of one call that are looked up, or written, together; an engine's own groups divide it.
pub(crate) const BATCH_COUNT: usize = 64;

impl Store {
    /// A copy of the key's value.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let mut copy = None;
        self.engine()?.get(key.as_ref(), &mut |_, value| copy = Some(value.to_vec()))?;
        Ok(copy)
    }

    /// As [`Store::get`], with the version that [`WriteBatch::expect_version`] takes.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get_versioned(&self, key: impl AsRef<[u8]>) -> Result<Option<(Version, Vec<u8>)>, Error> {
        let mut copy = None;
        self.engine()?.get(key.as_ref(), &mut |version, value| copy = Some((version, value.to_vec())))?;
        Ok(copy)
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
        let (mut read, mut result) = (Some(read), None);
        self.engine()?
            .get(key.as_ref(), &mut |version, value| result = read.take().map(|read| read(version, value)))?;
        Ok(result)
    }

    /// As [`Store::get_part_with`], for `read` that is shown the version, too.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get_part_versioned_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(Version, &[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut read, mut result) = (Some(read), None);
        let mut found = |version, value: &[u8]| result = read.take().map(|read| read(version, value));
        self.engine()?.get_part(key.as_ref(), &mut found)?;
        Ok(result)
    }

    /// Copies the key's value into `value`, in place of what was there; false, and an empty `value`, if there is none.
    ///
    /// # Errors
    /// See [`Error`].
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        self.engine()?.get(key.as_ref(), &mut |_, found| value.extend_from_slice(found))
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
        let (mut read, mut result) = (Some(read), None);
        self.engine()?.get(key.as_ref(), &mut |_, value| result = read.take().map(|read| read(value)))?;
        Ok(result)
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
        for (batch, keys) in keys.chunks(BATCH_COUNT).enumerate() {
            let mut slices = [&[][..]; BATCH_COUNT];
            slices.iter_mut().zip(keys).for_each(|(slice, key)| *slice = key.as_ref());
            engine.multi_get(&slices[..keys.len()], &mut |i, value| found(batch * BATCH_COUNT + i, value))?;
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
