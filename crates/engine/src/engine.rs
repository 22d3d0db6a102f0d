//! The seam between fronts and engines.

use std::io::Read;

use index::partitioned_hash::Cursor;
use pmem::Counts;

use crate::{Error, OrderStats, OrderedEngine, SnapshotEngine, SnapshotStats};

/// Which of a key's values was seen: equal for equal values that were put once, different after any later put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    pub(crate) item: u64,
    pub(crate) checksum: u32,
}

/// What a background step has left to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is more.
    More,
    /// Nothing, until somebody writes.
    Idle,
}

/// How many background threads have something to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Wanted {
    /// None.
    Nobody,
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

/// How far a check has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckStep {
    /// Where to go on, until it is done.
    pub cursor: Cursor,
    /// Items that this step read.
    pub item_count: u64,
}

/// An engine's figures at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EngineStats {
    /// Keys.
    pub items: u64,
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Bytes of the region below the high-water mark: used once, at least.
    pub used_bytes: u64,
    /// Bytes that items and index occupy. Exact once the sweep is over.
    pub live_bytes: u64,
    /// Bytes below the mark that are free. Zero until the sweep is over.
    pub free_bytes: u64,
    /// Volatile memory of index and allocator.
    pub dram_bytes: u64,
    /// True once free space is known; see [`Engine::step`].
    pub swept: bool,
    /// Replaced items that wait for readers to move on.
    pub garbage_count: u64,
    /// Segments of the hash index.
    pub segment_count: u64,
    /// Splits since open.
    pub split_count: u64,
    /// The mean load of the segments that were split, 0 to 1; 0 where none was.
    pub split_load: f64,
    /// Segments chained since open, because a split would not have made room.
    pub chained_count: u64,
    /// Flushes and fences, where they are counted.
    pub counts: Option<Counts>,
    /// The ordered index, where the engine can keep one.
    pub order: Option<OrderStats>,
    /// Snapshots.
    pub snapshots: SnapshotStats,
}

/// What every engine can do. All methods may be called by many threads at once; a write is durable, as far as the
/// medium goes, when it returns.
pub trait Engine: Send + Sync {
    /// The engine's name in stats and options.
    fn name(&self) -> &'static str;

    /// Shows the key's value to `found`; false if there is none. The value stays in place until `found` returns, which
    /// should be soon: space is not reused meanwhile.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error>;

    /// Shows each key's value, or `None`, to `found` with the key's number, in order. Memory accesses overlap, so that
    /// this is several times as fast as one [`Engine::get`] after the other (HiKV paper, section 6: future work).
    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error>;

    /// Puts or replaces.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Puts or replaces several: as [`Engine::put`] for one after the other, but faster (HiKV paper, section 6: future
    /// work). Not one step: an error, or a crash, may leave some of them done.
    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error>;

    /// Puts or replaces a value of `len_bytes`, read from `source`; nothing changes if the source ends early.
    fn put_from(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read) -> Result<(), Error>;

    /// Deletes; false if there was no such key.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Deletes every key, as one step.
    ///
    /// # Errors
    /// [`Error::SnapshotLive`], and nothing has changed.
    fn clear(&self) -> Result<(), Error>;

    /// How many keys there are. Waits for the sweep after open, and helps it.
    fn len(&self) -> Result<u64, Error>;

    /// True if there is no key; see [`Engine::len`].
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Shows the items of the next part of the store to `each`, in no order, and returns where to go on. Each key that
    /// is there from the first step to the last is shown exactly once; not a snapshot.
    fn walk(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<Cursor, Error>;

    /// Checks the next part of the store: every header, checksum and reference. Damage is shown to `damaged`.
    fn check(&self, cursor: Cursor, damaged: &mut dyn FnMut(Damage)) -> Result<CheckStep, Error>;

    /// Does a bounded piece of background work: the sweep after open, growth ahead of writers, what the order needs.
    fn step(&self) -> Result<Progress, Error>;

    /// Frees what writers left behind when they stopped. For idle times: every core passes a barrier.
    fn tidy(&self);

    /// Leaves behind what makes the next opening quick, if there is room. Nobody else uses the engine meanwhile; nothing
    /// that was acknowledged depends on it.
    fn close(&self) -> Result<(), Error>;

    /// Who should call [`Engine::step`]: there is something to do that others may soon wait for.
    fn wanted(&self) -> Wanted;

    /// The ordered operations, if the engine can keep keys in order.
    fn ordered(&self) -> Option<&dyn OrderedEngine>;

    /// The operations of snapshots.
    fn snapshots(&self) -> &dyn SnapshotEngine;

    /// The figures.
    fn stats(&self) -> EngineStats;
}
