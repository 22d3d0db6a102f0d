//! Puts, deletes and expiry.

use std::io::{self, Read};
use std::iter;

use engine::{BatchOp, Condition, CurrentItem, Decision, Engine, Required};
use transact::{Gate, GateLock, Window};

use super::{BATCH_COUNT, Keyspace, Mapping, Tree};
use crate::put_options::Expected;
use crate::{Error, Expires, PutOptions, WriteBatch};

/// A source that opens the writer's window when it has given its last byte, so that a slow source delays no
/// transaction.
struct LateWindow<'s, R> {
    source: R,
    rest_bytes: u64,
    gate_lock: &'s GateLock,
    gate: &'s Gate,
    window: Option<Window>,
}

impl<'s, R> LateWindow<'s, R> {
    fn new(keyspace: &'s Keyspace, source: R, len_bytes: u64) -> Result<LateWindow<'s, R>, Error> {
        let (gate_lock, gate) = (&keyspace.inner().gate_lock, &**keyspace.gate());
        // Fails if the thread must not write at all.
        let window = gate_lock.enter(gate)?;
        Ok(LateWindow { source, rest_bytes: len_bytes, gate_lock, gate, window: (len_bytes == 0).then_some(window) })
    }
}

impl<R: Read> Read for LateWindow<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read_bytes = self.source.read(bytes)?;
        self.rest_bytes = self.rest_bytes.saturating_sub(read_bytes as u64);
        if self.rest_bytes == 0 && self.window.is_none() {
            let opened = self.gate_lock.enter(self.gate);
            self.window = Some(opened.map_err(|inside| io::Error::other(Error::from(inside)))?);
        }
        Ok(read_bytes)
    }
}

impl Tree {
    /// Puts or replaces the key's value, and removes its expiry. Durable when it returns, as far as the storage
    /// allows.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("answer", "42")?;
    /// assert_eq!(store.get("answer")?.as_deref(), Some(&b"42"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::KeyTooLong`] or [`Error::ValueTooLong`] beyond the store's limits. [`Error::Medium`] if the store is
    /// full, opened read-only, or its storage failed. Nothing has changed.
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.keyspace.change_key(None, key.as_ref(), |engine, key| engine.put(key, value.as_ref()))
    }

    /// Puts or replaces the key's value as `options` say: with an expiry, on a condition, at another durability.
    ///
    /// No operation finds an expired key. Exception: [`Tree::len`] counts it until the background frees its space,
    /// within about a second. Times are those of the system's clock, in milliseconds, and never run backwards while the
    /// process lives. If the clock was set back before the store is opened again, expired keys whose space was not
    /// freed yet exist again. A put without expiry removes the expiry; [`Tree::update`], [`Tree::compare_and_swap`] and
    /// [`Tree::increment`] keep it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Clock, Options, PutOptions};
    /// use std::time::Duration;
    ///
    /// let clock = Clock::manual(0);
    /// let store = Options::new().clock(clock.clone()).open(dir.path())?;
    /// store.put_with("session", "ada", PutOptions::new().ttl(Duration::from_secs(60)))?;
    /// assert!(store.contains("session")?);
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(store.get("session")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] if the key does not meet the condition; [`Error::ExpiryTooLate`] if the store cannot
    /// represent the expiry; otherwise as for [`Tree::put`]. Nothing has changed.
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: PutOptions) -> Result<(), Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let expiry = self.inner().expiry(options.expires)?;
        self.keyspace.change_key(options.durability, key, |engine, key| match options.expected {
            None => engine.put_until(key, value, expiry),
            Some(Expected::Absent) => {
                let mut put = |held: Option<CurrentItem<'_>>| match held {
                    None => Decision::PutUntil(value.into(), expiry),
                    Some(_) => Decision::Keep,
                };
                let is_put = engine.update(key, &mut put)?;
                if is_put { Ok(()) } else { Err(Error::ConditionFailed { condition: 0 }) }
            }
            Some(Expected::Version(version)) => {
                let condition = Condition { key, required: Required::Version(version) };
                engine.write_batch_if(&[condition], &[BatchOp::PutUntil { key, value, expiry }])
            }
        })
    }

    /// Puts or replaces several keys' values; the last value of a repeated key wins. Faster than successive `put`s,
    /// because the items share flushes and fences. Not atomic: readers and crashes may see only some of the items.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// assert_eq!(store.get("two")?.as_deref(), Some(&b"zwei"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::put`]; some items may have been put.
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        items: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Error> {
        let items: Vec<(K, V)> = items.into_iter().collect();
        for batch in items.chunks(BATCH_COUNT) {
            let mut slices = [(&[][..], &[][..]); BATCH_COUNT];
            let pairs = batch.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
            slices.iter_mut().zip(pairs).for_each(|(slice, pair)| *slice = pair);
            self.keyspace.change_pairs(&slices[..batch.len()], |engine, pairs| engine.multi_put(pairs))?;
        }
        Ok(())
    }

    /// Applies all of `batch` as one atomic step. Durable when it returns, as far as the storage allows. An empty
    /// batch does nothing.
    ///
    /// A crash leaves all of the batch or nothing. A thread that has read one key as the batch left it reads no other
    /// key as it was before. (Two reads, one before and one after the batch, return old and new values, as any two
    /// reads may.) Ranges and [`Tree::for_each`] are not snapshots, and may return a part of the batch while it is
    /// applied.
    ///
    /// Up to 16 batches run at the same time; further ones wait. Batches that wait for a disk do not count. In a full
    /// region, stores of HiKV and Rewo-Hash may refuse even a batch that only deletes, because the record that makes it
    /// atomic needs space; [`Tree::delete`] needs none.
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
    /// [`Error::ConditionFailed`] if a condition does not hold; [`Error::BatchTooLong`],
    /// [`Error::BatchExceedsMemory`]; otherwise as for
    /// [`Tree::put_with`]. Nothing has changed. Exception: if the storage fails while the batch is made durable, the
    /// batch is applied and may be lost.
    pub fn write(&self, batch: &WriteBatch) -> Result<(), Error> {
        if !batch.is_all(|key| self.keyspace.is_plain(key)) {
            let trees: Vec<_> = iter::once(self.keyspace.mapping()).chain(batch.trees()).collect();
            return self.keyspace.change_trees(&trees, false, |engine, spaces| {
                let stored = batch.stored_keys(spaces);
                let ops = batch.ops(engine.clock(), Some(&stored))?;
                self.inner().check_memory_for(&ops)?;
                engine.write_batch_if(&batch.conditions(Some(&stored)), &ops)
            });
        }
        let ops = batch.ops(self.inner().engine()?.clock(), None)?;
        self.inner().check_memory_for(&ops)?;
        self.keyspace.change(|engine| engine.write_batch_if(&batch.conditions(None), &ops))
    }

    /// Like [`Tree::put`], with a value of `len_bytes` that is read from `source` piece by piece.
    ///
    /// # Errors
    /// [`Error::Source`] if `source` fails or ends early; otherwise as for [`Tree::put`]. Nothing has changed, though
    /// `source` may have been read.
    pub fn put_from(&self, key: impl AsRef<[u8]>, len_bytes: u64, source: impl Read) -> Result<(), Error> {
        self.put_from_with(key, len_bytes, source, PutOptions::new())
    }

    /// Like [`Tree::put_from`], with an expiry, counted from the call and not from the end of `source`, and at another
    /// durability.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::PutOptions;
    /// use std::time::Duration;
    ///
    /// let film = std::io::repeat(7);
    /// store.put_from_with("film", 1 << 20, film, PutOptions::new().ttl(Duration::from_secs(60)))?;
    /// assert_eq!(store.reader("film")?.expect("it was just put").len_bytes(), 1 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the options have a condition; otherwise as for [`Tree::put_from`] and
    /// [`Tree::put_with`].
    pub fn put_from_with(
        &self,
        key: impl AsRef<[u8]>,
        len_bytes: u64,
        mut source: impl Read,
        options: PutOptions,
    ) -> Result<(), Error> {
        let (expiry, inner) = (self.inner().expiry(options.expires)?, self.inner());
        let put = |engine: &dyn Engine, key: &[u8], source: &mut dyn Read| match options.expected {
            None => engine.put_from_until(key, len_bytes, source, expiry),
            Some(_) => Err(Error::Unsupported { engine: engine.name(), what: "conditions on a value from a source" }),
        };
        if !self.keyspace.is_plain(key.as_ref()) {
            // The key's stored form is needed now, and must stay the same.
            return self
                .keyspace
                .change_key(options.durability, key.as_ref(), |engine, key| put(engine, key, &mut source));
        }
        let put = || {
            let mut source = LateWindow::new(&self.keyspace, source, len_bytes)?;
            inner.change_without_window(|engine| put(engine, key.as_ref(), &mut source))
        };
        self.keyspace.at(options.durability, put)
    }

    /// Changes the key's expiry: after a duration, at a time, or never. Returns false if the key is absent. A time in
    /// the past deletes the key. The value is copied within the region, so its space is needed twice for a moment.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Expires, Ttl};
    /// use std::time::Duration;
    ///
    /// store.put("session", "ada")?;
    /// assert!(store.expire("session", Duration::from_secs(60))?);
    /// assert!(store.expire("session", Expires::Never)?);
    /// assert_eq!(store.ttl("session")?, Some(Ttl::Unlimited));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::put_with`].
    pub fn expire(&self, key: impl AsRef<[u8]>, expires: impl Into<Expires>) -> Result<bool, Error> {
        let expiry = self.inner().expiry(expires.into())?;
        self.keyspace.change_key(None, key.as_ref(), |engine, key| engine.expire(key, expiry))
    }

    /// Deletes the key. Returns false if it was absent.
    ///
    /// # Errors
    /// As for [`Tree::put`].
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.keyspace.change_key(None, key.as_ref(), |engine, key| engine.delete(key))
    }

    /// Deletes every key of the tree as one atomic step, for readers and for a crash. A tree with a name is cleared in
    /// the time of a small write, whatever its size; its space becomes free in the background.
    ///
    /// # Errors
    /// [`Error::BatchTooLong`] for the nameless tree of a store with named trees, whose keys are deleted by one batch.
    /// Of a store without, [`Error::SnapshotLive`] while there are snapshots. Of a tree with a name,
    /// [`Error::TreeBusy`] if its writes do not end within ten seconds, and [`Error::InsideCallback`] within a callback
    /// of one. Otherwise as for [`Tree::put`]. Nothing has changed.
    pub fn clear(&self) -> Result<(), Error> {
        let trees = &self.inner().trees;
        match self.keyspace.mapping() {
            Mapping::Named(named) => {
                self.keyspace.change_alone(|engine| trees.clear(engine, &self.inner().gate_lock, named))
            }
            Mapping::Stored => self
                .keyspace
                .change_alone(|engine| trees.clear_all(engine, &self.inner().gate_lock, &self.inner().gate)),
            Mapping::Nameless if trees.is_begun() => self.keyspace.clear_nameless(),
            Mapping::Nameless => self.keyspace.change(|engine| engine.clear()),
        }
    }
}
