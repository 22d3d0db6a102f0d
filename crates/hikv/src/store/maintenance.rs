//! Work on the whole store: snapshots, checks, compaction, notices of expired keys.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{Check, CompactionProgress, CompactionReport, Damage, Depth, Engine, Error, OnExpired, OnExpiredItem};

#[cfg(doc)]
use crate::Tree;
use crate::handles::Kind;
use crate::verify::{Report, VerifyProgress};
use crate::{Background, ProgressReply, ReadView, Snapshot, Store};

impl Store {
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
        if self.shows_all() {
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
        if self.shows_all() {
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
    /// compaction ([`ProgressReply`]), the report covers the work done.
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
    pub fn compact<A: ProgressReply>(
        &self,
        mut progress: impl FnMut(CompactionProgress) -> A,
    ) -> Result<CompactionReport, Error> {
        let mut show = |at| match progress(at).goes_on() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        self.inner().writable_engine()?.compact(&mut show)
    }

    /// Checks every header, checksum and reference of the store, looks up every key, and compares free space with used
    /// space. Calls `progress` before the first item and from time to time. If `progress` stops it
    /// ([`ProgressReply`]), the report covers the items checked so far. Changes nothing.
    ///
    /// Writers should pause while it runs: an entry that changes during its check can look damaged.
    ///
    /// # Errors
    /// [`Error::Forked`]. Damage is no error: the report lists it.
    pub fn verify<A: ProgressReply>(&self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        check(self.inner().engine()?, Depth::Deep, progress)
    }

    /// Like [`Store::verify`], without reading keys and values: checks the headers of the region, its chunks, segments
    /// and items, and the offsets in entries.
    ///
    /// # Errors
    /// As for [`Store::verify`].
    pub fn verify_headers<A: ProgressReply>(&self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        check(self.inner().engine()?, Depth::Quick, progress)
    }
}

/// Checks a store as deeply as requested.
fn check<A: ProgressReply>(
    engine: &dyn Engine,
    depth: Depth,
    mut progress: impl FnMut(VerifyProgress) -> A,
) -> Result<Report, Error> {
    // If damage prevents the count, the total is the known number, and the report will list the damage.
    let items_total = match engine.len() {
        Err(Error::Corrupt { .. }) => engine.stats().items,
        counted => counted?,
    };
    let (mut damage, mut check) = (Vec::new(), Check::new(depth));
    while progress(VerifyProgress { items: check.item_count(), items_total }).goes_on() && !check.is_done() {
        engine.check(&mut check, &mut |found| damage.push(found))?;
    }
    if depth == Depth::Deep && check.is_done() && damage.is_empty() {
        catalog::check(engine, &mut |what| damage.push(Damage { offset: 0, what }))?;
    }
    Ok(Report { items: check.item_count(), damage })
}
