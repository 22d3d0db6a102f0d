//! The interface between front ends and engines.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use epoch::Pinned;

use crate::{
    BatchOp, Check, Clock, CompactionReport, Condition, Cursor, EngineStats, Error, Expiry, Features, Limits,
    OnCompaction, OnDamaged, OnItem, OrderedEngine, PackedLookup, Progress, SnapshotEngine, ValueBuffer, Witness,
};

/// A decision about a key, given its current value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision<'v> {
    /// Leaves the key as it is.
    Keep,
    /// Puts this value and keeps the key's expiry.
    Put(Cow<'v, [u8]>),
    /// Puts this value with this expiry.
    PutUntil(Cow<'v, [u8]>, Expiry),
    /// Deletes the key.
    Delete,
}

/// The current value and expiry of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurrentItem<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The expiry.
    pub expiry: Expiry,
}

/// Decides about a key: receives its current item, or `None`.
pub type Decide<'a, 'v> = dyn FnMut(Option<CurrentItem<'_>>) -> Decision<'v> + 'a;

/// Receives the key of an item that has expired. The thread that removed the item calls it after its operation has
/// ended. The callback may use the store and should be quick. A panic ends only the call.
pub type OnExpired = dyn Fn(&[u8]) + Send + Sync;

/// As [`OnExpired`], with the value and the expiry of the item.
pub type OnExpiredItem = dyn Fn(&[u8], &[u8], Expiry) + Send + Sync;

/// The number of background threads that have work to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum WantedThreads {
    /// None.
    None,
    /// One.
    One,
    /// All that exist.
    All,
}

/// A contradiction in a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The offset into the region.
    pub offset: u64,
    /// A description of the damage.
    pub what: String,
}

/// Receives the result of an item or key, by its number.
pub type OnResult<'a, T = ()> = dyn FnMut(usize, Result<T, Error>) + 'a;

/// The operations of every engine. All methods may be called by many threads at the same time. When a write returns, it
/// is durable as far as the medium allows.
///
/// # Errors
/// Every method that can fail may return [`Error::Medium`] or, for damage, [`Error::Corrupt`]. Methods with keys and
/// values may return [`Error::KeyTooLong`] and [`Error::ValueTooLong`]. An operation that an engine lacks
/// ([`Engine::features`]) returns [`Error::Unsupported`] and changes nothing, unless the engine says otherwise. The
/// methods name further errors.
pub trait Engine: Send + Sync {
    /// Returns the engine's name in stats and options.
    fn name(&self) -> &'static str;

    /// Returns the optional operations that the engine offers.
    fn features(&self) -> Features {
        Features::POINTS
    }

    /// Returns the longest keys, values and batches.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Returns the store's identity, from its superblock.
    fn uuid(&self) -> [u8; 16];

    /// Calls `found` with the key's value; returns false if there is none. The value stays in place until `found`
    /// returns. `found` should be quick: freed space is not reused while it runs.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error>;

    /// Returns true if [`Engine::lookup`] and [`Engine::lookup_many`] are worth a try before [`Engine::get`].
    fn supports_lookup(&self) -> bool {
        false
    }

    /// Returns the key's value, as [`Engine::get`] finds it, if one optimistic lookup at the key's usual place is
    /// enough. Otherwise returns [`PackedLookup::UNSURE`], without effect. The value is in the engine's memory or in
    /// the caller's `_buffer`.
    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, _key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        PackedLookup::UNSURE
    }

    /// As [`Engine::lookup`] for several keys in order, up to the first whose lookup is unsure; returns the number of
    /// `values` written. The memory accesses of all keys overlap.
    fn lookup_many<'a>(&'a self, _pinned: Pinned<'a>, _keys: &[&[u8]], _values: &mut [Option<&'a [u8]>]) -> usize {
        0
    }

    /// As [`Engine::get`], for a `found` that reads only a part of the value or its length: if reads compare checksums
    /// ([`crate::Verify`]), the checksum of a long value is not compared.
    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.get(key, found)
    }

    /// Calls `found` with each key's number and its value, or `None`, in order. The memory accesses overlap, so this is
    /// several times as fast as calling [`Engine::get`] for each key (HiKV paper, section 6: future work).
    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (i, key) in keys.iter().enumerate() {
            if !self.get(key, &mut |_, value| found(i, Some(value)))? {
                found(i, None);
            }
        }
        Ok(())
    }

    /// Fetches what writes of these keys will need into the processor's caches, all at the same time. A hint, which
    /// changes nothing.
    fn prefetch(&self, _keys: &[&[u8]]) {}

    /// Puts or replaces a value. The key then has no expiry, even if it had one before.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// As [`Engine::put`], with an expiry.
    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        if expiry.is_never() { self.put(key, value) } else { Err(unsupported(self.name(), "keys that expire")) }
    }

    /// Puts or replaces several values: as [`Engine::put`] for each, but faster (HiKV paper, section 6: future work).
    /// The call is not atomic: after an error or a crash some of the items may have been put.
    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// As [`Engine::multi_put`], and calls `on_result` once per item with its result. A failed item does not stop the
    /// others. No item is put twice, so a value that readers have seen replaced does not return.
    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        items.iter().enumerate().for_each(|(number, (key, value))| on_result(number, self.put(key, value)));
    }

    /// As [`Engine::multi_put`] of different keys into a store that is not yet in use: it is complete only when all
    /// items are written. Uses the method with the least work per item.
    fn fill(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.multi_put(items)
    }

    /// Puts and deletes several keys in one step for readers and for a crash. If a key occurs twice, its last operation
    /// counts. The ordered index, which scans read, takes the changes one by one. A batch without operations changes
    /// nothing; it fails when other writes would.
    ///
    /// # Errors
    /// [`Error::BatchTooLong`].
    fn write_batch(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.write_batch_if(&[], ops)
    }

    /// As [`Engine::write_batch`], if all conditions hold. All conditions are judged at one moment before any operation
    /// of the batch is visible, and no other write comes between. A key may have a condition, or be written, or both.
    /// See `docs/decisions/0015-compare-versions-under-the-locks.md`.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] names a condition that did not hold; nothing has changed.
    fn write_batch_if(&self, _conditions: &[Condition<'_>], _ops: &[BatchOp<'_>]) -> Result<(), Error> {
        Err(unsupported(self.name(), "batches"))
    }

    /// Puts or replaces a value of `len_bytes` read from `source`; nothing changes if the source ends early.
    fn put_from(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read) -> Result<(), Error> {
        self.put_from_until(key, len_bytes, source, Expiry::NEVER)
    }

    /// As [`Engine::put_from`], with an expiry.
    fn put_from_until(
        &self,
        _key: &[u8],
        _len_bytes: u64,
        _source: &mut dyn Read,
        _expiry: Expiry,
    ) -> Result<(), Error> {
        Err(unsupported(self.name(), "values that are read from a source"))
    }

    /// Deletes the key; returns false if it was absent.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Deletes several keys: as [`Engine::delete`] for each, but faster. Calls `on_result` once per key, with true if
    /// the key was present. The call is not atomic; a failed key does not stop the others, and no key is deleted twice.
    fn multi_delete_each(&self, keys: &[&[u8]], on_result: &mut OnResult<'_, bool>) {
        keys.iter().enumerate().for_each(|(number, key)| on_result(number, self.delete(key)));
    }

    /// Changes the key as `decide` returns for its current item, in one step; returns true if anything changed.
    /// `decide` runs without locks, is called again if another thread wrote the key in between, and its last decision
    /// is the one carried out. It should be quick: freed space is not reused while it runs.
    fn update<'v>(&self, _key: &[u8], _decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        Err(unsupported(self.name(), "writes that depend on what a key holds"))
    }

    /// Changes the key's expiry; returns true if the key was present. Writes a new item: the value is copied within the
    /// region.
    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        if !self.features().expiry {
            return Err(unsupported(self.name(), "keys that expire"));
        }
        self.update(key, &mut |held| match held {
            Some(held) => Decision::PutUntil(held.value.to_vec().into(), expiry),
            None => Decision::Keep,
        })
    }

    /// Returns the key's expiry; `None` if the key is absent.
    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        Ok(self.get(key, &mut |_, _| {})?.then_some(Expiry::NEVER))
    }

    /// Registers `callback`, which is called with each expired key after its removal: by the background within about a
    /// second, or by an earlier write to the key. Replaces any earlier callback, which no longer runs when this
    /// returns, unless the caller is inside that callback. `None` unregisters the callback. Engines without expiry
    /// never call it.
    fn on_expired(&self, _callback: Option<Arc<OnExpired>>) {}

    /// As [`Engine::on_expired`], for a callback that needs values: each value is copied before its item is removed.
    /// Each of the two methods replaces the callback of the other.
    fn on_expired_item(&self, _callback: Arc<OnExpiredItem>) {}

    /// Returns the clock that decides which keys have expired.
    fn clock(&self) -> &Clock;

    /// Deletes every key in one step.
    ///
    /// # Errors
    /// [`Error::SnapshotLive`]: nothing has changed.
    fn clear(&self) -> Result<(), Error>;

    /// Returns the number of keys, including expired keys that the reaper has not deleted yet. Waits for the sweep
    /// after an open, and helps with it.
    fn len(&self) -> Result<u64, Error>;

    /// Returns true if there is no key; see [`Engine::len`].
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Calls `each` with the items of the next part of the store and their expiries, in no order, and returns the
    /// position after them. A key that is present from the first step to the last is visited exactly once. The walk is
    /// not a snapshot. A number that the engine never returned is harmless.
    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error>;

    /// As [`Engine::walk`], for read-only stores: skips damaged items and reports each to `damaged`. A report may also
    /// stand for a part of the store with an unknown number of items. Cursors of this walk are valid only for this
    /// walk.
    fn walk_skipping_damage(
        &self,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        _damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        self.walk(cursor, each)
    }

    /// Returns a position in the store chosen by `seed`, for callers that want any key.
    fn random_cursor(&self, _seed: u64) -> Cursor {
        Cursor::Start
    }

    /// Checks the next part of the store and reports damage to `damaged`; see [`Check`]. Writes nothing.
    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error>;

    /// Does a bounded piece of background work: the sweep after an open, growth ahead of writers, changes for the
    /// ordered index, deletion of expired keys.
    fn step(&self) -> Result<Progress, Error> {
        Ok(Progress::Idle)
    }

    /// Frees garbage of writers that have stopped, collapses small pages into huge pages, and returns the work that is
    /// left or that became possible for [`Engine::step`]. Meant for idle times: every core executes a barrier.
    fn tidy(&self) -> Progress {
        Progress::Idle
    }

    /// Moves items together and returns free space to the file system, as far as possible or until `_progress` stops
    /// it. Other threads read and write at the same time. Waits for the sweep after an open, and helps with it.
    ///
    /// # Errors
    /// [`Error::InsideCallback`] if `_progress` requests a compaction.
    fn compact(&self, _progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        Err(unsupported(self.name(), "compaction"))
    }

    /// Returns the error that blocks writes to a store that was opened for writing. Costs a load.
    ///
    /// # Errors
    /// [`Error::Medium`] if the medium has failed.
    fn health(&self) -> Result<(), Error>;

    /// Makes every write that has returned as durable as the medium can, if it was acknowledged with less.
    fn sync(&self) -> Result<(), Error>;

    /// Writes an image that makes the next open quick, if there is space. No other thread uses the
    /// engine during the call. No acknowledged write depends on it.
    fn close(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how many threads should call [`Engine::step`]: there is work that other threads may soon wait for.
    fn wanted_threads(&self) -> WantedThreads {
        WantedThreads::None
    }

    /// Does a step of background work that writers create faster than the background finishes it, if the background is
    /// behind. For a writer, after a write that found a step [wanted](Engine::wanted_threads). Does nothing inside
    /// another operation's callback.
    ///
    /// # Errors
    /// As for [`Engine::step`].
    fn assist_background(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how long no thread needs to call [`Engine::step`] unless [`Engine::wanted_threads`] requests one; `None`
    /// for no limit. The one thread that watches time calls this before each sleep.
    fn sleep_time(&self) -> Option<Duration> {
        None
    }

    /// Returns the ordered operations, if the engine can keep keys in order.
    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        None
    }

    /// Returns the snapshot operations, if the engine has them.
    fn snapshots(&self) -> Option<&dyn SnapshotEngine> {
        None
    }

    /// Returns the engine's statistics.
    fn stats(&self) -> EngineStats;
}

fn unsupported(engine: &'static str, what: &'static str) -> Error {
    Error::Unsupported { engine, what }
}
