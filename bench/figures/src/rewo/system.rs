//! The compared tables, all on the same kind of memory: a file of their own in tmpfs, with the requested delay of
//! reads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::Progress;
use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use index::block_hash::layout::{FILLED_MAX, SLOT_COUNT};
use pmem::{Latency, MediumError};
use pmem_os::{HostDram, MapOptions, Mapped, ticks};
use rivals::{LevelHash, PathHash, Pfht, RewoPrinted, Table};

use crate::memory::{Counted, Memory, slowed};
use crate::{Error, records};

/// Slots of a segment.
const SEGMENT_SLOTS: u64 = 504;
/// More than a copy needs in volatile memory: the cached table has space for every item, as in the paper's figures.
const COPY_BYTES_MAX: u64 = 256;
/// The maximum number of partitions.
const PARTITIONS_MAX: u32 = 256;

/// The outcome of an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Updated {
    Done,
    Absent,
    /// The table was full, and the key has its old value.
    NoSpace,
}

/// A table under measurement.
pub(super) trait System {
    /// Adds a key that does not exist; returns false if there is no space. A table that need not look for the key first
    /// does not.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error>;
    /// Replaces the value of a key, or adds the key; returns false if there is no space.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error>;
    /// Replaces the value of a key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<Updated, Error>;
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;
    fn slot_count(&self) -> u64;
    /// Lets background work happen that a thread on a core of its own would have done by now. It is not timed.
    fn catch_up(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the number of slots that inserts can use.
    fn usable_slot_count(&self) -> u64 {
        self.slot_count()
    }
    fn medium(&self) -> &Memory;

    /// Returns the accesses since the table was made.
    fn counted(&self) -> Counted {
        Counted::of(self.medium())
    }
}

/// The parameters of a table.
pub(super) struct Made<'a> {
    pub(super) dir: &'a Path,
    pub(super) segments: u32,
    pub(super) read_block_ns: u64,
    pub(super) persist_ns: u64,
    pub(super) cache_bytes: u64,
    /// The time of a read of the machine's own memory.
    pub(super) memory_read_ns: u64,
    /// Items are moved between the turns, and not by a thread, so that counts are exact.
    pub(super) is_counting: bool,
}

/// The writer of the cached table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copies {
    /// There is no cached table.
    None,
    /// The thread that writes the item.
    ByWriters,
    /// A separate thread: one for the one that writes.
    ByAThread,
}

type Make = fn(&Made<'_>) -> Result<Box<dyn System>, Error>;

/// All tables by name. `rewo-no-copy` has no cached table, a separate thread writes that of `rewo-pool`, and `rewo-bpe`
/// moves items ahead of inserts. `printed` is the paper's own table, in the same variants.
pub(super) const ALL: [(&str, Make); 10] = [
    ("rewo", |made| made.rewo(Copies::ByWriters, false)),
    ("rewo-no-copy", |made| made.rewo(Copies::None, false)),
    ("rewo-pool", |made| made.rewo(Copies::ByAThread, false)),
    ("rewo-bpe", |made| made.rewo(Copies::ByWriters, true)),
    ("printed", |made| made.rival::<RewoPrinted<Memory>>()),
    ("printed-no-copy", |made| made.rival::<RewoPrinted<Memory, false>>()),
    ("printed-bpe", |made| made.rival_with(pre_evict)),
    ("pfht", |made| made.rival::<Pfht<Memory>>()),
    ("path", |made| made.rival::<PathHash<Memory>>()),
    ("level", |made| made.rival::<LevelHash<Memory>>()),
];

impl Made<'_> {
    /// Returns memory in an unnamed file, which ends with its mapping.
    fn memory(&self, bytes: u64) -> Result<Memory, Error> {
        let home = tempfile::tempdir_in(self.dir)?;
        let mapped = Mapped::create(&home.path().join("region"), bytes, MapOptions::default())?;
        let ticks = |ns| ticks(Duration::from_nanos(ns));
        let latency = Latency {
            read_block_ticks: ticks(self.read_block_ns),
            persist_ticks: ticks(self.persist_ns),
            memory_read_ticks: ticks(self.memory_read_ns),
            block_bytes: Latency::BLOCK_BYTES_PRINTED,
            cache_bytes: self.cache_bytes,
            ..Latency::default()
        };
        slowed(mapped, latency)
    }

    fn slot_count(&self) -> u64 {
        u64::from(self.segments) * SEGMENT_SLOTS
    }

    fn rival<T: Table<Memory> + 'static>(&self) -> Result<Box<dyn System>, Error> {
        self.rival_with::<T>(|_| Ok(()))
    }

    fn rival_with<T: Table<Memory> + 'static>(
        &self,
        catch_up: fn(&T) -> Result<(), Error>,
    ) -> Result<Box<dyn System>, Error> {
        Ok(Box::new(Rival { table: T::format(self.memory(4096)?, self.slot_count())?, catch_up }))
    }

    /// Creates a table of the requested number of segments. Temporary items make the table split until it has them.
    fn rewo(&self, copies: Copies, pre_evicts: bool) -> Result<Box<dyn System>, Error> {
        let partition_count = self.segments.min(PARTITIONS_MAX);
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count, region_bytes: 1 << 20 };
        let store = RewoHash::format(self.memory(1 << 20)?, HostDram, &parameters)?;
        if self.segments > partition_count {
            let passing = || (0..self.slot_count() * 6 / 10).map(|number| records::key(u64::MAX - number));
            passing().try_for_each(|key| store.put(&key, b"passing"))?;
            passing().try_for_each(|key| store.delete(&key).map(drop))?;
        }
        let segment_count = store.table().segment_count();
        if segment_count != u64::from(self.segments) {
            return Err(format!("got {segment_count} segments instead of {}; use a power of two", self.segments).into());
        }
        let copy_bytes = if copies == Copies::None { 0 } else { self.slot_count() * COPY_BYTES_MAX };
        let store = store.of_fixed_size().pre_evicting(pre_evicts).caching(copy_bytes, HostDram)?;
        let store = Arc::new(store.copying_by(usize::from(copies == Copies::ByAThread))?);
        let background = (pre_evicts && !self.is_counting).then(|| Background::start(&store));
        let catches_up = pre_evicts && self.is_counting;
        Ok(Box::new(Rewo { store, slot_count: self.slot_count(), catches_up, _background: background }))
    }
}

/// A rival, and its background work.
struct Rival<T> {
    table: T,
    catch_up: fn(&T) -> Result<(), Error>,
}

/// Moves items out of full buckets while any can move.
fn pre_evict(table: &RewoPrinted<Memory>) -> Result<(), Error> {
    while table.pre_evict()? > 0 {}
    Ok(())
}

impl From<bool> for Updated {
    fn from(is_there: bool) -> Updated {
        if is_there { Updated::Done } else { Updated::Absent }
    }
}

/// Returns false if the table was full.
fn has_space(done: Result<(), rivals::Error>) -> Result<bool, Error> {
    match done {
        Err(rivals::Error::Full) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

impl<T: Table<Memory>> System for Rival<T> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        has_space(self.table.insert(key, value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        has_space(self.table.put(key, value))
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<Updated, Error> {
        match self.table.update(key, value) {
            Err(rivals::Error::Full) => Ok(Updated::NoSpace),
            updated => Ok(updated?.into()),
        }
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.table.delete(key)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.table.get(key, found))
    }

    fn catch_up(&self) -> Result<(), Error> {
        (self.catch_up)(&self.table)
    }

    fn slot_count(&self) -> u64 {
        self.table.slot_count()
    }

    fn medium(&self) -> &Memory {
        self.table.medium()
    }
}

type Store = RewoHash<Memory, HostDram>;

struct Rewo {
    store: Arc<Store>,
    slot_count: u64,
    catches_up: bool,
    _background: Option<Background>,
}

impl System for Rewo {
    /// A put: the engine always looks for the key, in the two buckets that it needs anyway.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.put(key, value)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self.store.put(key, value) {
            Err(engine::Error::Medium(MediumError::Limit { .. })) => Ok(false),
            done => Ok(done.map(|()| true)?),
        }
    }

    /// A put, which also searches for the key; the workloads update existing keys.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<Updated, Error> {
        Ok(self.store.put(key, value).map(|()| Updated::Done)?)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.store.delete(key)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.get(key, &mut |_, _, value| found(value))?)
    }

    fn catch_up(&self) -> Result<(), Error> {
        while self.catches_up && self.store.step()? == Progress::More {}
        Ok(())
    }

    fn slot_count(&self) -> u64 {
        self.slot_count
    }

    /// An insert leaves one slot of each bucket free, for updates.
    fn usable_slot_count(&self) -> u64 {
        self.slot_count / SLOT_COUNT as u64 * u64::from(FILLED_MAX)
    }

    fn medium(&self) -> &Memory {
        self.store.medium()
    }
}

/// The thread that moves items ahead of inserts, until it is dropped.
struct Background {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// The pause between two walks.
    const REST: Duration = Duration::from_millis(1);

    fn start(store: &Arc<Store>) -> Background {
        let (store, is_over) = (Arc::clone(store), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        let work = move || {
            while !over.load(Ordering::Acquire) {
                // An error here is also returned to the writers.
                if !matches!(store.step(), Ok(Progress::More)) {
                    thread::park_timeout(Background::REST);
                }
            }
        };
        Background { is_over, thread: Some(thread::spawn(work)) }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.thread.take().into_iter().for_each(|thread| {
            thread.thread().unpark();
            let _ = thread.join();
        });
    }
}
