//! Putting and deleting, whatever the keys hold.

use std::io::Read;

use crate::reads::BATCH_COUNT;
use crate::{Error, Store, WriteBatch};

impl Store {
    /// Puts or replaces the key's value; the key does not expire, whatever it did before. When this returns it is durable, as far as the medium goes.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed.
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.change(|engine| engine.put(key.as_ref(), value.as_ref()))
    }

    /// Puts or replaces several keys' values, the last one where a key comes twice: faster than one `put` after the other,
    /// since they share what makes them durable. Not one step: readers, and a crash, may come in between.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put(&[("one", "eins"), ("two", "zwei")])?;
    /// assert_eq!(store.get("two")?.as_deref(), Some(&b"zwei"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`]; some may have been put.
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), Error> {
        for batch in items.chunks(BATCH_COUNT) {
            let mut slices = [(&[][..], &[][..]); BATCH_COUNT];
            let pairs = batch.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
            slices.iter_mut().zip(pairs).for_each(|(slice, pair)| *slice = pair);
            self.change(|engine| engine.multi_put(&slices[..batch.len()]))?;
        }
        Ok(())
    }

    /// As [`Store::multi_put`], and `on_result` is told what became of each item, by its number: one that fails keeps none of the others
    /// back, and none is put twice. It may not use the store.
    pub fn multi_put_each<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        items: &[(K, V)],
        mut on_result: impl FnMut(usize, Result<(), Error>),
    ) {
        for (first, batch) in items.chunks(BATCH_COUNT).enumerate().map(|(i, batch)| (i * BATCH_COUNT, batch)) {
            let mut slices = [(&[][..], &[][..]); BATCH_COUNT];
            let pairs = batch.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
            slices.iter_mut().zip(pairs).for_each(|(slice, pair)| *slice = pair);
            let slices = &slices[..batch.len()];
            let mut each = |number: usize, done| on_result(first + number, done);
            let asked = self.change(|engine| {
                engine.multi_put_each(slices, &mut each);
                Ok(())
            });
            if asked.is_err() {
                (0..slices.len()).for_each(|number| each(number, self.writable_engine().map(drop)));
            }
        }
    }

    /// Carries out all of `batch` as one step: a crash leaves all or nothing, and a thread that has read one key as left by the
    /// batch reads no other as it was before. (A thread that reads one key before the batch and another after it has read old and
    /// new, as with any two reads.) Durable when it returns, as far as the medium goes. An empty batch does nothing. Ranges and
    /// [`Store::for_each`] are no snapshots, and may show a part of it while it happens.
    ///
    /// Sixteen batches can be under way at once; another one waits. In a full region stores of HiKV and Rewo-Hash may refuse one that only deletes, too, since the record
    /// that makes it one step takes room; [`Store::delete`] needs none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let mut batch = hikv::WriteBatch::new();
    /// batch.put("user:7:name", "ann").put("name:ann", "7");
    /// store.write(&batch)?;
    /// assert_eq!(store.get("name:ann")?.as_deref(), Some(&b"7"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`], [`Error::ConditionFailed`] and [`Error::BatchTooLong`] among them; nothing has changed. Where the medium fails while the batch is
    /// made durable, it has happened and may be lost.
    pub fn write(&self, batch: &WriteBatch) -> Result<(), Error> {
        self.change(|engine| engine.write_batch_if(&batch.conditions(), &batch.ops()))
    }

    /// As [`Store::put`], for a value of `len_bytes` that is read from `source` piece by piece.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed, whatever was read.
    pub fn put_from(&self, key: impl AsRef<[u8]>, len_bytes: u64, mut source: impl Read) -> Result<(), Error> {
        self.change(|engine| engine.put_from(key.as_ref(), len_bytes, &mut source))
    }

    /// Deletes the key; false if it was not there.
    ///
    /// # Errors
    /// See [`Error`].
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.change(|engine| engine.delete(key.as_ref()))
    }

    /// Deletes several keys, and `on_result` is told of each, by its number, whether it was there: faster than one `delete` after the other where
    /// the engine has them share what makes them durable, as `pmekv` does. Not one step; one that fails keeps none of the others back. It may
    /// not use the store.
    pub fn multi_delete_each<K: AsRef<[u8]>>(&self, keys: &[K], mut on_result: impl FnMut(usize, Result<bool, Error>)) {
        for (first, batch) in keys.chunks(BATCH_COUNT).enumerate().map(|(i, batch)| (i * BATCH_COUNT, batch)) {
            let mut slices = [&[][..]; BATCH_COUNT];
            slices.iter_mut().zip(batch).for_each(|(slice, key)| *slice = key.as_ref());
            let slices = &slices[..batch.len()];
            let mut each = |number: usize, done| on_result(first + number, done);
            let asked = self.change(|engine| {
                engine.multi_delete_each(slices, &mut each);
                Ok(())
            });
            if asked.is_err() {
                (0..slices.len()).for_each(|number| each(number, self.writable_engine().map(|_| false)));
            }
        }
    }

    /// Deletes every key, as one step for readers and for a crash.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed. [`Error::SnapshotLive`] while there are snapshots.
    pub fn clear(&self) -> Result<(), Error> {
        self.change(|engine| engine.clear())
    }
}
