//! The seam between fronts and engines.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use epoch::Pinned;

use crate::{
    BatchOp, Check, Clock, CompactionReport, Condition, Cursor, EngineStats, Error, Expiry, Features, Limits,
    OnCompaction, OnDamaged, OnItem, OrderedEngine, PackedLookup, Progress, SnapshotEngine, ValueBuffer, Witness,
};

/// What to do with a key, given what it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision<'v> {
    /// Leave it as it is.
    Keep,
    /// Put this value. The key expires when it did before.
    Put(Cow<'v, [u8]>),
    /// Put this value, which expires then.
    PutUntil(Cow<'v, [u8]>, Expiry),
    /// Delete it.
    Delete,
}

/// What a key holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurrentItem<'a> {
    /// Its value.
    pub value: &'a [u8],
    /// When it expires.
    pub expiry: Expiry,
}

/// Decides on a key: is shown what it holds, or `None`.
pub type Decide<'a, 'v> = dyn FnMut(Option<CurrentItem<'_>>) -> Decision<'v> + 'a;

/// Is told the key of an item that has expired, by the thread that took it away and has ended its operation: it may use the
/// store, and should be quick. A panic ends with the call.
pub type OnExpired = dyn Fn(&[u8]) + Send + Sync;

/// As [`OnExpired`], with the value that the key had, and when it expired.
pub type OnExpiredItem = dyn Fn(&[u8], &[u8], Expiry) + Send + Sync;

/// How many background threads have something to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum WantedThreads {
    /// None.
    None,
    /// One suffices.
    One,
    /// As many as there are.
    All,
}

/// Something in a store that contradicts something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Where, as an offset into the region.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

/// Is told what became of an item, or of a key, by its number.
pub type OnResult<'a, T = ()> = dyn FnMut(usize, Result<T, Error>) + 'a;

/// What every engine can do. All methods may be called by many threads at once; a write is durable, as far as the
/// medium goes, when it returns.
///
/// What not every engine has ([`Engine::features`]) is [`Error::Unsupported`] unless the engine says otherwise, and changes
/// nothing.
pub trait Engine: Send + Sync {
    /// The engine's name in stats and options.
    fn name(&self) -> &'static str;

    /// What it offers besides.
    fn features(&self) -> Features {
        Features::POINTS
    }

    /// How long keys, values and batches may be.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// The store's identity, from its superblock.
    fn uuid(&self) -> [u8; 16];

    /// Shows the key's value to `found`; false if there is none. The value stays in place until `found` returns, which
    /// should be soon: space is not reused meanwhile.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error>;

    /// Whether it is worth a look ([`Engine::lookup`], [`Engine::lookup_many`]) before a value is asked for.
    fn supports_lookup(&self) -> bool {
        false
    }

    /// The key's value, as [`Engine::get`] shows it, if a look at the place where it usually is suffices; where it does not suffice, nothing has
    /// happened. It lies where the engine has it, or in the caller's `room`.
    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, _key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        PackedLookup::UNSURE
    }

    /// As [`Engine::lookup`], one key after the other, up to the first that it does not suffice for: how many are `values`. Memory accesses
    /// overlap, those for all other keys, too.
    fn lookup_many<'a>(&'a self, _pinned: Pinned<'a>, _keys: &[&[u8]], _values: &mut [Option<&'a [u8]>]) -> usize {
        0
    }

    /// As [`Engine::get`], for `found` that looks at a part of the value or at its length: where reads compare checksums
    /// ([`crate::Verify`]), that of a long value is not.
    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.get(key, found)
    }

    /// Shows each key's value, or `None`, to `found` with the key's number, in order. Memory accesses overlap, so that
    /// this is several times as fast as one [`Engine::get`] after the other (HiKV paper, section 6: future work).
    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (i, key) in keys.iter().enumerate() {
            if !self.get(key, &mut |_, value| found(i, Some(value)))? {
                found(i, None);
            }
        }
        Ok(())
    }

    /// Puts or replaces. The key does not expire, whatever it did before.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// As [`Engine::put`], of a key that expires.
    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        if expiry.is_never() { self.put(key, value) } else { Err(unsupported(self.name(), "keys that expire")) }
    }

    /// Puts or replaces several: as [`Engine::put`] for one after the other, but faster (HiKV paper, section 6: future
    /// work). Not one step: an error, or a crash, may leave some of them done.
    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// As [`Engine::multi_put`], and `on_result` is told of each item once what became of it: it was put, or it was not. One that fails
    /// keeps none of the others back, and nothing is put twice, so that what readers see meanwhile does not come back.
    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        items.iter().enumerate().for_each(|(number, (key, value))| on_result(number, self.put(key, value)));
    }

    /// As [`Engine::multi_put`] of different keys, into a store that is no store before all of it is written: in the way that takes the
    /// least for many.
    fn fill(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.multi_put(items)
    }

    /// Puts and deletes several keys as one step for readers and for a crash; the last operation of a key counts. The
    /// order of keys, which scans read, takes the changes one by one. A batch without operations changes nothing, and is refused where
    /// other writes are.
    fn write_batch(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.write_batch_if(&[], ops)
    }

    /// As [`Engine::write_batch`], if all conditions hold: each is judged as of one moment, before any of the batch is seen, and
    /// no other write comes in between. A key may have a condition, or be written, or both. See
    /// `docs/decisions/0015-compare-versions-under-the-locks.md`.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] names a condition that did not hold, and nothing has changed.
    fn write_batch_if(&self, _conditions: &[Condition<'_>], _ops: &[BatchOp<'_>]) -> Result<(), Error> {
        Err(unsupported(self.name(), "batches"))
    }

    /// Puts or replaces a value of `len_bytes`, read from `source`; nothing changes if the source ends early.
    fn put_from(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read) -> Result<(), Error> {
        self.put_from_until(key, len_bytes, source, Expiry::NEVER)
    }

    /// As [`Engine::put_from`], of a key that expires.
    fn put_from_until(
        &self,
        _key: &[u8],
        _len_bytes: u64,
        _source: &mut dyn Read,
        _expiry: Expiry,
    ) -> Result<(), Error> {
        Err(unsupported(self.name(), "values that are read from a source"))
    }

    /// Deletes; false if there was no such key.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Deletes several keys: as [`Engine::delete`] for one after the other, but faster. `on_result` is told of each once whether there was such
    /// a key. Not one step; one that fails keeps none of the others back, and nothing is deleted twice.
    fn multi_delete_each(&self, keys: &[&[u8]], on_result: &mut OnResult<'_, bool>) {
        keys.iter().enumerate().for_each(|(number, key)| on_result(number, self.delete(key)));
    }

    /// Changes the key as `decide` says of what it holds, as one step; true if anything changed. `decide` runs outside of
    /// locks, is asked again whenever another thread wrote the key meanwhile, and its last answer is what happened. It should be
    /// quick: space is not reused meanwhile.
    fn update<'v>(&self, _key: &[u8], _decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        Err(unsupported(self.name(), "writes that depend on what a key holds"))
    }

    /// Changes when the key expires, and says whether it was there. The item is written anew: its value is copied within
    /// the region.
    fn expire(&self, _key: &[u8], _expiry: Expiry) -> Result<bool, Error> {
        Err(unsupported(self.name(), "keys that expire"))
    }

    /// When the key expires; `None` if there is no such key.
    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        Ok(self.get(key, &mut |_, _| {})?.then_some(Expiry::NEVER))
    }

    /// From now on `on_result` is told of each key that has expired, once it is taken away: by the background, within a second or
    /// so, or by a write to the key that comes before. It takes the place of any other, which does not run any more when this
    /// returns, unless the caller is inside of it; `None` ends the telling. Engines without keys that expire never call it.
    fn on_expired(&self, _callback: Option<Arc<OnExpired>>) {}

    /// As [`Engine::on_expired`], for a callback that wants values: each is copied before its item goes. Replaces the callback of that method as well, and is
    /// replaced by it.
    fn on_expired_item(&self, _callback: Arc<OnExpiredItem>) {}

    /// The clock by which keys expire.
    fn clock(&self) -> &Clock;

    /// Deletes every key, as one step.
    ///
    /// # Errors
    /// [`Error::SnapshotLive`], and nothing has changed.
    fn clear(&self) -> Result<(), Error>;

    /// How many keys there are, those among them that expired and were not reaped yet. Waits for the sweep after open, and helps it.
    fn len(&self) -> Result<u64, Error>;

    /// True if there is no key; see [`Engine::len`].
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Shows the items of the next part of the store to `each`, with when they expire, in no order, and returns where to go
    /// on. Each key that is there from the first step to the last is shown exactly once; not a snapshot. A number that the
    /// engine never gave is harmless.
    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error>;

    /// As [`Engine::walk`], of a store that is open for reading alone, without what is damaged, each of which `damaged` is told of: an item, or a
    /// part of the store of which nobody knows how many items it has. Cursors are those of this walk.
    fn walk_skipping_damage(
        &self,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        _damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        self.walk(cursor, each)
    }

    /// Somewhere in the store, chosen by `seed`: for callers that want any key.
    fn random_cursor(&self, _seed: u64) -> Cursor {
        Cursor::Start
    }

    /// Checks the next part of the store; see [`Check`]. Damage is shown to `damaged`. Nothing is stored.
    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error>;

    /// Does a bounded piece of background work: the sweep after open, growth ahead of writers, what the order needs,
    /// what has expired.
    fn step(&self) -> Result<Progress, Error> {
        Ok(Progress::Idle)
    }

    /// Frees what writers left behind when they stopped, puts small pages together, and says whether there is more to do, or that leaves
    /// something for [`Engine::step`]. For idle times: every core passes a barrier.
    fn tidy(&self) -> Progress {
        Progress::Idle
    }

    /// Gathers items, and gives free space back to the file system, as far as it can be done, or until `_progress` stops it; others read and
    /// write meanwhile. Waits for the sweep after open, and helps it.
    fn compact(&self, _progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        Err(unsupported(self.name(), "compaction"))
    }

    /// What speaks against further writes, though the store was opened for them. Costs a load.
    ///
    /// # Errors
    /// The medium's.
    fn health(&self) -> Result<(), Error>;

    /// Makes every write that has returned as durable as the medium can, where it was acknowledged with less.
    fn sync(&self) -> Result<(), Error>;

    /// Leaves behind what makes the next opening quick, if there is room. Nobody else uses the engine meanwhile; nothing
    /// that was acknowledged depends on it.
    fn close(&self) -> Result<(), Error> {
        Ok(())
    }

    /// How many threads should call [`Engine::step`]: there is something to do that others may soon wait for.
    fn wanted_threads(&self) -> WantedThreads {
        WantedThreads::None
    }

    /// Does a step of what writers can put off faster than the background keeps up with, if the background is behind: for a writer, after a
    /// write that found a step [wanted](Engine::wanted_threads). A caller that is inside of another operation's callback does nothing.
    ///
    /// # Errors
    /// As for [`Engine::step`].
    fn assist_background(&self) -> Result<(), Error> {
        Ok(())
    }

    /// How long no thread need call [`Engine::step`] unless one is [`Engine::wanted_threads`]; `None` for ever. The one thread that watches time
    /// asks this before each of its sleeps.
    fn sleep_time(&self) -> Option<Duration> {
        None
    }

    /// The ordered operations, if the engine can keep keys in order.
    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        None
    }

    /// The operations of snapshots, if the engine has them.
    fn snapshots(&self) -> Option<&dyn SnapshotEngine> {
        None
    }

    /// The figures.
    fn stats(&self) -> EngineStats;
}

fn unsupported(engine: &'static str, what: &'static str) -> Error {
    Error::Unsupported { engine, what }
}
