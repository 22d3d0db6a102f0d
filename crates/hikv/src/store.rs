//! The store that people use.

use std::fmt;
use std::io::Read;
use std::mem;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::{Cursor, Engine, Error, OrderedEngine, Wanted, Worker};
use journal::{Acknowledger, OsFile};
use pmem_os::{ForkGuard, StoreLock};

use crate::files::{self, Opened};
use crate::journal_files::Progress;
use crate::stats::{Identity, JournalStats, Stats};
use crate::{OpenError, Options, ValueReader, WriteBatch};

/// Keys whose lookups overlap; an engine's own groups divide it.
const BATCH_COUNT: usize = 64;

/// The longest value that compaction may move: what lies in a slot. Longer ones have chunks of their own.
const MOVED_BYTES_MAX: usize = heap::Class::BYTES_MAX as usize;

/// An open store. Clones share it; the last one to go closes it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// Dropped in this order: nobody works in the background any more when the clean image is written and the region
/// unmapped, and nobody else gets the lock before it is.
struct Inner {
    workers: Vec<Worker>,
    is_closed: bool,
    engine: Arc<dyn Engine>,
    guard: ForkGuard,
    path: PathBuf,
    identity: Identity,
    journal: Option<Acknowledger<OsFile>>,
    sync_interval: Duration,
    _lock: Option<StoreLock>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Inner {
    /// Stops the background and leaves a clean image, once.
    fn shut(&mut self) -> Result<(), Error> {
        self.workers.clear();
        if mem::replace(&mut self.is_closed, true) { Ok(()) } else { self.engine.close() }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.guard.in_owner() {
            // The workers' threads stayed in the parent: there is nothing to stop or to wait for.
            mem::forget(mem::take(&mut self.workers));
        } else if !thread::panicking() {
            // What was acknowledged is durable; without an image the next opening takes longer.
            let _ = self.shut();
        }
    }
}

impl Store {
    /// Opens the store at `path`, a directory or a DAX device, and creates it if there is none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().open(path)
    }

    /// Opens an existing store for reading. Several processes can, while nobody has it open for writing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().read_only(true).open(path)
    }

    pub(crate) fn with_options(path: &Path, options: &Options, progress: &Progress<'_>) -> Result<Store, OpenError> {
        Store::of_opened(path, options, |path, options| files::open(path, options, progress))
    }

    pub(crate) fn of_opened(
        path: &Path,
        options: &Options,
        open: impl FnOnce(&Path, &Options) -> Result<Opened, OpenError>,
    ) -> Result<Store, OpenError> {
        let guard = ForkGuard::new().map_err(OpenError::io(path, "watch for forks of"))?;
        let Opened { engine, identity, journal, lock } = open(path, options)?;
        let start = |i| if i == 0 { Worker::start_watching_time } else { Worker::start };
        let workers = (0..options.worker_count())
            .map(|i| start(i)(Arc::downgrade(&engine)))
            .collect::<Result<_, _>>()
            .map_err(OpenError::io(path, "start a background thread of"))?;
        Ok(Store {
            inner: Arc::new(Inner {
                workers,
                is_closed: false,
                engine,
                guard,
                path: path.to_owned(),
                identity,
                journal,
                sync_interval: options.sync_interval,
                _lock: lock,
            }),
        })
    }

    /// The directory or device, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The file or device that holds the region.
    #[must_use]
    pub fn region_path(&self) -> PathBuf {
        files::region_path(&self.inner.path)
    }

    /// The store's identity: random, and kept for life.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.identity.uuid()
    }

    /// A copy of the key's value.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let mut copy = None;
        self.engine()?.get(key.as_ref(), &mut |_, value| copy = Some(value.to_vec()))?;
        Ok(copy)
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

    /// A reader of the key's value, for values too large to copy at once.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>, Error> {
        let (key, mut found) = (key.as_ref(), None);
        self.engine()?.get(key, &mut |version, value| {
            let held = (value.len() <= MOVED_BYTES_MAX).then(|| value.to_vec());
            found = Some((version, value.len() as u64, held));
        })?;
        let reader = |(version, len_bytes, held)| ValueReader {
            store: self.clone(),
            key: key.to_vec(),
            version,
            len_bytes,
            read_bytes: 0,
            held,
        };
        Ok(found.map(reader))
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

    /// Carries out all of `batch` as one step: a crash leaves all of it or nothing, and whoever has read one key as the
    /// batch left it reads no other as it was before. (Who reads one key before the batch and another after it has read
    /// old and new, as with any two reads.) Durable when it returns, as far as the medium goes. An empty batch does
    /// nothing. Ranges and [`Store::for_each`] are no snapshots, and may show a part of it while it happens.
    ///
    /// Sixteen batches can be under way at once; another one waits.
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
    /// See [`Error`], [`Error::BatchTooLong`] among them; nothing has changed. Where the medium fails while the batch is
    /// made durable, it has happened and may be lost.
    pub fn write(&self, batch: &WriteBatch) -> Result<(), Error> {
        self.change(|engine| engine.write_batch(&batch.ops()))
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

    /// True if the key is there.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.engine()?.get(key.as_ref(), &mut |_, _| {})
    }

    /// How many keys there are; those that expired count until their room is taken back, within a second or so. Just after
    /// open this waits until they are counted.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn len(&self) -> Result<u64, Error> {
        self.engine()?.len()
    }

    /// True if there is no key.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Deletes every key, as one step for readers and for a crash.
    ///
    /// # Errors
    /// See [`Error`]; nothing has changed. [`Error::SnapshotLive`] while there are snapshots.
    pub fn clear(&self) -> Result<(), Error> {
        self.change(|engine| engine.clear())
    }

    /// Shows every item to `each`, in no order, until it says to stop. Not a snapshot: what is written meanwhile may be
    /// shown or not.
    ///
    /// # Errors
    /// See [`Error`]; a damaged item ends the walk.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
        while !cursor.is_done() && flow.is_continue() {
            cursor = self.engine()?.walk(cursor, &mut |key, value| {
                if flow.is_continue() {
                    flow = each(key, value);
                }
            })?;
        }
        Ok(())
    }

    /// Shows the items of the next part of the store, up to some thousand, to `each`, in no order, and says where to go on.
    /// 0 is the beginning, and the end. Such a number stays good while the store grows, and when it is opened again: each
    /// key that is there from the first step to the last is shown exactly once. Any other number is harmless.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], "value")?; }
    /// let (mut at, mut count) = (0, 0);
    /// loop {
    ///     at = store.walk(at, |_key, _value| count += 1)?;
    ///     if at == 0 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(count, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub fn walk(&self, from: u64, mut each: impl FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        self.engine()?.walk(Cursor::from_number(from), &mut each).map(Cursor::number)
    }

    /// Makes every write that has returned as durable as the medium can. That is nothing to do but with durability `buffered`
    /// or `process` on a journal.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn sync(&self) -> Result<(), Error> {
        self.engine()?.sync()
    }

    /// The store's figures. Just after open this waits until keys are counted.
    ///
    /// # Panics
    /// In a child of the process that opened the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // A sweep that fails leaves figures that are too small; whoever reads or writes gets the error.
        let _ = self.len();
        self.stats_now().expect("stats are for the process that opened the store")
    }

    /// The figures as far as they are known now, without waiting; [`Stats::counted`] tells whether they are complete.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats_now(&self) -> Result<Stats, Error> {
        let journal = self.journal().map(|journal| JournalStats::of(journal.figures(), self.inner.sync_interval));
        Ok(Stats::gather(self.engine()?, &self.inner.identity, journal))
    }

    /// What speaks against further writes, though the store was opened for them: a journal's disk that failed. Costs a load.
    ///
    /// # Errors
    /// [`Error::Medium`] with [`crate::MediumError::Poisoned`]; [`Error::Forked`].
    pub fn health(&self) -> Result<(), Error> {
        self.engine()?.health()
    }

    /// Closes this handle. The store is closed when its last clone is, and its last snapshot; whatever was acknowledged is durable before that.
    /// The last one leaves a clean image, where there is room for it: the next opening then need not look for free space,
    /// count keys, or sort them if they were in order. Dropping the last handle does the same and tells no errors.
    ///
    /// # Errors
    /// [`Error::Forked`]. The medium's, if it fails while the image is written: the store is closed and whole.
    pub fn close(self) -> Result<(), Error> {
        self.engine()?;
        Arc::into_inner(self.inner).map_or(Ok(()), |mut inner| inner.shut())
    }

    #[inline(always)]
    pub(crate) fn engine(&self) -> Result<&dyn Engine, Error> {
        if self.inner.guard.in_owner() { Ok(&*self.inner.engine) } else { Err(Error::Forked) }
    }

    #[inline(always)]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        let engine = self.engine()?;
        let result = change(engine);
        match engine.wanted() {
            Wanted::Nobody => {}
            Wanted::One => self.inner.workers.iter().take(1).for_each(Worker::ask),
            Wanted::All => self.ask_workers(),
        }
        result
    }

    pub(crate) fn journal(&self) -> Option<&Acknowledger<OsFile>> {
        self.inner.journal.as_ref()
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    pub(crate) fn ask_workers(&self) {
        self.inner.workers.iter().for_each(Worker::ask);
    }

    pub(crate) fn ordered_engine(&self) -> Result<&dyn OrderedEngine, Error> {
        self.engine()?.ordered().ok_or(Error::HashOnly)
    }
}
