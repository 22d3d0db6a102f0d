//! The whole store: its properties and figures, snapshots, checks, compaction, notices of expired keys.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use engine::prelude::*;
use engine::{CompactionProgress, CompactionReport, Depth, Error, Features, Limits, OnExpired, OnExpiredItem};

#[cfg(doc)]
use crate::Tree;
use crate::handles::Kind;
use crate::verify::{self, Report, VerifyProgress};
use crate::{Background, CallbackReply, EngineKind, ReadView, Snapshot, Stats, Store};

impl Store {
    /// Returns the directory or device, as the caller gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner().path
    }

    /// Returns the store's identity: a random number that never changes.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner().identity.uuid()
    }

    /// Returns the free bytes of the store's file system, or `None` for a device. Costs a system call.
    #[must_use]
    pub fn disk_free_bytes(&self) -> Option<u64> {
        self.inner().files.disk_free_bytes()
    }

    /// Returns the store's figures. Just after open, this waits until all keys are counted.
    ///
    /// # Panics
    /// In a child of the process that opened the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // If counting fails, figures stay too small; the next read or write returns the error. This does not wait for
        // durability, because figures acknowledge nothing.
        let _ = self.inner().engine().and_then(Walks::len);
        self.inner().stats_now().expect("stats are for the process that opened the store")
    }

    /// Returns the error that blocks writes to a store opened for writing: a journal's disk failed, the store's files
    /// were found missing ([`FrontEnd::check_files`](crate::FrontEnd::check_files)), or a write panicked. Costs two
    /// loads while the store is healthy.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.health()?;
    /// println!("{} bytes of the disk are free", store.disk_free_bytes().unwrap_or(0));
    /// println!("store {:02x?}, nodes of the tree of ink: {:?}", store.uuid(), store.stats().figure("ink_nodes"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Medium`] with [`crate::MediumError::Poisoned`] or [`crate::MediumError::Removed`]; [`Error::HalfWay`];
    /// [`Error::Forked`].
    pub fn health(&self) -> Result<(), Error> {
        self.inner().engine()?.health().map_err(|error| self.inner().explained(error))?;
        self.inner().writable_engine().map(drop)
    }

    /// Returns the kind of the store's engine.
    ///
    /// # Panics
    /// Never: only a known kind of engine opens a store.
    #[must_use]
    pub fn engine_kind(&self) -> EngineKind {
        self.inner().engine.name().parse().expect("a store is opened by a kind of engine")
    }

    /// Returns the engine's features beyond operations on single keys.
    #[must_use]
    pub fn features(&self) -> Features {
        self.inner().engine.features()
    }

    /// Returns the longest key, value and batch that this store accepts.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// assert_eq!(store.limits().value_bytes_max, 1 << 30);
    /// assert!(store.features().snapshots, "the engine hikv has them");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.inner().engine.limits()
    }

    /// Takes a snapshot of the store's present contents.
    ///
    /// It includes every write that returned before this call and none that begins after it returns. A concurrent
    /// write is either completely in the snapshot or not at all. If it is, so are all writes that had returned before
    /// that write began.
    ///
    /// It costs little, but the call waits for all running operations, and so for callbacks of other threads
    /// ([`crate::InPlace::get`], [`Tree::for_each`] and similar).
    ///
    /// # Errors
    /// [`Error::InsideCallback`] within such a callback. [`Error::Unsupported`] if the engine has no snapshots.
    /// [`Error::TooManySnapshots`] after 4,294,967,294 snapshots of one store.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Snapshot::take(self.another(Kind::Snapshot))
    }

    /// Returns the present items as a view that later writes do not change.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("key", "value")?;
    /// let mut count = 0;
    /// store.read_view()?.for_each(|_, _, _| count += 1)?;
    /// assert_eq!(count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Store::snapshot`]. [`Error::Unsupported`] if the engine has no snapshots and the store is open for
    /// writing.
    pub fn read_view(&self) -> Result<ReadView, Error> {
        match self.snapshot() {
            Err(Error::Unsupported { .. }) if self.inner().is_read_only => Ok(ReadView::ReadOnly(self.clone())),
            snapshot => snapshot.map(ReadView::Snapshot),
        }
    }

    /// Returns the background work that the caller's threads can do.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Options::new().background(false).open(dir.path())?;
    /// store.put("key", "value")?;
    /// let step = store.background().step()?; // in the program's idle time
    /// println!("{} changes applied; more to do: {}", step.applied_count, step.is_more);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn background(&self) -> Background<'_> {
        Background::of(self.inner())
    }

    /// Registers `callback`, which is called with each expired key after its item was removed. Replaces any earlier
    /// callback, which no longer runs when this returns; `None` unregisters it.
    ///
    /// A background thread removes expired items within about a second. A write to the same key may remove an item
    /// earlier, and so may a writer of other expiring keys if the background is behind. [`Tree::clear`] causes no
    /// calls. Keys of trees with names are not reported.
    ///
    /// The callback runs on the thread that removed the item, which then holds no locks of the store. It may use the
    /// store in any way, including [`Tree::clear`] and this function, which in that case does not wait for the
    /// running callback. Keys that expire through the callback's own operations are reported after it returns. A panic
    /// of the callback ends there, and later keys are still reported. It should be quick, because a background thread
    /// that runs it does nothing else. It should not own the store, which could then never close; hold a
    /// [`std::sync::Weak`] to the owner.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Clock, Options, PutOptions};
    /// use std::sync::{Arc, mpsc};
    /// use std::time::Duration;
    ///
    /// let clock = Clock::manual(0);
    /// let store = Options::new().clock(clock.clone()).open(dir.path())?;
    /// let (gone, keys) = mpsc::channel();
    /// store.on_expired(Some(Arc::new(move |key: &[u8]| _ = gone.send(key.to_vec()))))?;
    /// store.put_with("session", "ada", PutOptions::new().ttl(Duration::from_secs(60)))?;
    /// clock.advance(Duration::from_secs(60));
    /// store.put("session", "bob")?;
    /// assert_eq!(keys.recv()?, b"session");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn on_expired(&self, callback: Option<Arc<OnExpired>>) -> Result<(), Error> {
        let engine = self.inner().engine()?;
        if self.keyspace().shows_all() {
            engine.on_expired(callback);
            return Ok(());
        }
        let key_of = self.inner().trees.nameless_keys();
        engine.on_expired(callback.map(|callback| -> Arc<OnExpired> {
            Arc::new(move |stored: &[u8]| key_of(stored).into_iter().for_each(|key| callback(key)))
        }));
        Ok(())
    }

    /// Like [`Store::on_expired`], for a callback that also receives the key's value and expiry, for example to remove
    /// the key from an index over values. Each value is copied before its item is removed. Replaces any other
    /// callback; [`Store::on_expired`] with `None` unregisters it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Clock, Expiry, Options, PutOptions};
    /// use std::sync::{Arc, mpsc};
    /// use std::time::Duration;
    ///
    /// let clock = Clock::manual(0);
    /// let store = Options::new().clock(clock.clone()).open(dir.path())?;
    /// let (gone, items) = mpsc::channel();
    /// store.on_expired_item(Arc::new(move |key: &[u8], value: &[u8], _: Expiry| {
    ///     _ = gone.send((key.to_vec(), value.to_vec()));
    /// }))?;
    /// store.put_with("session", "ada", PutOptions::new().ttl(Duration::from_secs(60)))?;
    /// clock.advance(Duration::from_secs(60));
    /// store.put("session", "bob")?;
    /// assert_eq!(items.recv()?, (b"session".to_vec(), b"ada".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn on_expired_item(&self, callback: Arc<OnExpiredItem>) -> Result<(), Error> {
        let engine = self.inner().engine()?;
        if self.keyspace().shows_all() {
            engine.on_expired_item(callback);
            return Ok(());
        }
        let key_of = self.inner().trees.nameless_keys();
        engine.on_expired_item(Arc::new(move |stored: &[u8], value: &[u8], expiry| {
            key_of(stored).into_iter().for_each(|key| callback(key, value, expiry));
        }));
        Ok(())
    }

    /// Moves items into fewer chunks, and returns the space of emptied chunks to the file system as far as possible.
    /// Calls `progress` from time to time. Other threads can read and write while it runs. The file does not become
    /// shorter: it gets holes, if its file system supports them.
    ///
    /// Items move into gaps of other chunks, so compaction needs no additional space. Space that readers still use
    /// becomes free after them. `progress` may use the store in any way except for compacting it. If it stops the
    /// compaction ([`CallbackReply`]), the report covers the work done.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Options::new().tuning(|tuning| tuning.compact_above(None)).open(dir.path())?;
    /// for number in 0..1_000u32 {
    ///     store.put(number.to_be_bytes(), [7; 4_000])?;
    /// }
    /// for number in 0..1_000u32 {
    ///     if number % 10 > 0 {
    ///         store.delete(number.to_be_bytes())?;
    ///     }
    /// }
    /// let compacted = store.compact(|_| {})?;
    /// assert!(compacted.moved_items > 0);
    /// assert!(compacted.taken_bytes_after <= compacted.taken_bytes_before);
    /// assert_eq!(store.len()?, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InsideCallback`] within `progress`. [`Error::Corrupt`] if damage prevents the count of free space.
    /// Damaged items are no error: they stay in place, and the report lists their offsets. Work done before an error
    /// stays done.
    pub fn compact<A: CallbackReply>(
        &self,
        mut progress: impl FnMut(CompactionProgress) -> A,
    ) -> Result<CompactionReport, Error> {
        let mut show = |at| match progress(at).flow().is_continue() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        self.inner().writable_engine()?.compact(&mut show)
    }

    /// Checks every header, checksum and reference of the store, looks up every key, and compares free space with used
    /// space. Calls `progress` before the first item and from time to time. If `progress` stops it
    /// ([`CallbackReply`]), the report covers the items checked so far. Changes nothing.
    ///
    /// Writers should pause while it runs: an entry that changes during its check can look damaged.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("key", "value")?;
    /// let report = store.verify(|progress| println!("{} items", progress.items))?;
    /// assert!(report.damage.is_empty());
    /// assert!(hikv::FrontEnd::of(&store).verify_headers(|_| {})?.damage.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`]. Damage is no error: the report lists it.
    pub fn verify<A: CallbackReply>(&self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        verify::check(self.inner().engine()?, Depth::Deep, progress)
    }
}
