//! Reading values where they are.

use std::array;

use engine::{Engine, Error, Expiry, Lookup, OnFound, Version, Witness, empty_buffer};

use crate::tree::Keyspace;
use crate::tree::StoredKeys;

/// Keys of one lookup group: about as many as a core has cache misses in flight.
const GROUP_COUNT: usize = 16;

/// Reads of values in place, from [`Tree::in_place`](crate::Tree::in_place), for servers and bindings that copy a value
/// to its destination themselves.
///
/// Each read calls a function with the value. The function should be quick, because no space of any store is reused
/// while it runs ([`Stats::oldest_pin_ms`](crate::Stats::oldest_pin_ms)). It may read and write; a snapshot, or a
/// range whose index is not ready, is an error within it. Reads are acknowledged at the store's own durability.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// store.put("line", "to be or not to be")?;
/// let words = store.in_place().get("line", |value| value.split(|&byte| byte == b' ').count())?;
/// assert_eq!(words, Some(6));
/// assert_eq!(store.in_place().get_part("line", |value| value.len())?, Some(18));
///
/// let mut lengths = Vec::new();
/// store.in_place().multi_get(&["line", "absent"], |_, value| lengths.push(value.map(<[u8]>::len)))?;
/// assert_eq!(lengths, [Some(18), None]);
///
/// assert_eq!(store.in_place().get_part_item("line", |item| item.value().len())?, Some(18));
/// let seen = store.in_place().get_item("line", |item| (item.version(), item.expiry()))?;
/// store.put("line", "that is the question")?;
/// assert_ne!(store.in_place().get_part_item("line", |item| (item.version(), item.expiry()))?, seen);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct InPlace<'s> {
    keys: &'s Keyspace,
}

impl<'s> InPlace<'s> {
    #[inline(always)]
    pub(crate) fn of(keys: &'s Keyspace) -> InPlace<'s> {
        InPlace { keys }
    }

    /// Calls `read` with the key's value. Returns its result, or `None` if the key is absent.
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get).
    #[inline]
    pub fn get<R>(self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        self.keys.with_key(key.as_ref(), |key| {
            let engine = self.keys.inner().engine()?;
            if self.keys.supports_lookup() {
                let (pin, mut buffer) = (epoch::pin(), empty_buffer());
                match engine.lookup(pin.pinned(), key, &mut buffer).unpack() {
                    Lookup::Value(value) => return Ok(Some(read(value))),
                    Lookup::Absent => return Ok(None),
                    Lookup::Unsure => {}
                }
            }
            get_without_lookup(engine, key, read)
        })
    }

    /// Like [`InPlace::get`], and passes an item that also has the expiry and the version.
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get).
    pub fn get_item<R>(self, key: impl AsRef<[u8]>, read: impl FnOnce(ItemView<'_>) -> R) -> Result<Option<R>, Error> {
        self.keys.with_key(key.as_ref(), |key| view(key, read, |found| self.keys.inner().engine()?.get(key, found)))
    }

    /// Like [`InPlace::get`], for a `read` that needs only a part of the value or its length. Checksums of values
    /// longer than 4 KiB are not compared, whatever [`crate::Tuning::verify_reads`] is.
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get).
    #[inline]
    pub fn get_part<R>(self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        self.keys.with_key(key.as_ref(), |key| {
            let (mut read, mut result) = (Some(read), None);
            let mut found = |_, _, value: &[u8]| result = read.take().map(|read| read(value));
            self.keys.inner().engine()?.get_part(key, &mut found)?;
            Ok(result)
        })
    }

    /// Like [`InPlace::get_item`], for a `read` that needs only a part of the value, its length, or none of it, as
    /// [`InPlace::get_part`].
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get).
    pub fn get_part_item<R>(
        self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(ItemView<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        self.keys
            .with_key(key.as_ref(), |key| view(key, read, |found| self.keys.inner().engine()?.get_part(key, found)))
    }

    /// Calls `found` with each key's index and value, in the order of `keys`.
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get); `found` may have been called for some keys.
    pub fn multi_get<K: AsRef<[u8]>>(
        self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let engine = self.keys.inner().engine()?;
        if !keys.iter().all(|key| self.keys.is_plain(key.as_ref())) {
            return self.multi_get_stored(engine, keys, &mut found);
        }
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

    /// Like [`InPlace::multi_get`], for keys that are not stored under their own names.
    fn multi_get_stored<K: AsRef<[u8]>>(
        self,
        engine: &dyn Engine,
        keys: &[K],
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let mut found = |i, value: Option<&[u8]>| found(group * GROUP_COUNT + i, value);
            self.keys.mapping().with_space(&self.keys.inner().trees, |space| {
                let stored = StoredKeys::of(space, keys.iter().map(AsRef::as_ref));
                let mut slices = [&[][..]; GROUP_COUNT];
                slices.iter_mut().zip(stored.iter()).for_each(|(slice, key)| *slice = key);
                self.read_group(engine, &slices[..keys.len()], &mut found)
            })?;
        }
        Ok(())
    }

    /// Reads the values of up to [`GROUP_COUNT`] keys.
    #[inline]
    fn read_group(
        self,
        engine: &dyn Engine,
        keys: &[&[u8]],
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let found_count = if self.keys.supports_lookup() { lookup_group(engine, keys, found) } else { 0 };
        if found_count < keys.len() {
            engine.multi_get(&keys[found_count..], &mut |i, value| found(found_count + i, value))?;
        }
        Ok(())
    }
}

/// An item that is read in place: [`InPlace::get_item`].
#[derive(Clone, Copy, Debug)]
pub struct ItemView<'a> {
    key: &'a [u8],
    value: &'a [u8],
    expiry: Expiry,
    witness: Witness,
}

impl<'a> ItemView<'a> {
    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// Returns the expiry, [`Expiry::NEVER`] if the key has none.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.expiry
    }

    /// Returns the version. Most engines compute it from the entire value.
    #[must_use]
    pub fn version(&self) -> Version {
        self.witness.version(self.key, self.value)
    }

    /// Returns the stored form of the key.
    pub(crate) fn stored_key(&self) -> &'a [u8] {
        self.key
    }

    /// Returns the place, checksum and expiry, which cost no hash.
    pub(crate) fn witness(&self) -> Witness {
        self.witness
    }
}

/// Passes the item that `get` finds to `read`.
fn view<R>(
    key: &[u8],
    read: impl FnOnce(ItemView<'_>) -> R,
    get: impl FnOnce(&mut OnFound<'_>) -> Result<bool, Error>,
) -> Result<Option<R>, Error> {
    let (mut read, mut result) = (Some(read), None);
    get(&mut |witness, expiry, value| {
        result = read.take().map(|read| read(ItemView { key, value, expiry, witness }));
    })?;
    Ok(result)
}

/// Like [`InPlace::get`], without a lookup first.
#[inline(never)]
fn get_without_lookup<R>(engine: &dyn Engine, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
    let (mut read, mut result) = (Some(read), None);
    engine.get(key, &mut |_, _, value| result = read.take().map(|read| read(value)))?;
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
