//! The compared stores, all on the same kind of memory: a file of their own in tmpfs, with the requested delays of
//! persists and reads. Each has the same records in the same heap.

use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::prelude::*;
use engine::{Direction, Early, Progress, ScanCursor, WantedThreads, Worker};
use engine_hikv::{HiKv, Ordered};
use heap::Parameters;
use pmem::Latency;
use pmem_os::{HostDram, MapOptions, Mapped, ticks};
use rivals::{CACHED_BYTES_A_PAIR, FpTree, FpTreeCached, KeyBytes, NvTree, Sizes, Tree};

use crate::Error;
use crate::memory::{Counted, Memory, slowed};

/// The initial length of a region.
const REGION_BYTES: u64 = 4 << 20;
/// The unit of reads: memory as fast as DRAM has no larger one.
const LINE_BYTES: u64 = 64;

/// Receives a key and its value, and returns whether to continue.
pub(super) type OnPair<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A store under measurement. Threads share it.
pub(super) trait System: Sync {
    fn put(&self, key: &KeyBytes, value: &[u8]) -> Result<(), Error>;
    fn get(&self, key: &KeyBytes, found: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;
    fn delete(&self, key: &KeyBytes) -> Result<bool, Error>;
    /// Calls `each` with the pairs from `from` on, in ascending order.
    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> Result<(), Error>;
    /// Finishes background work, which is not timed.
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the bytes of DRAM for index and copies, and the bytes of persistent memory in use.
    fn used_bytes(&self) -> Result<[u64; 2], Error>;
    fn medium(&self) -> &Memory;
    /// Returns the time for which writers have put keys in order that a backend thread would otherwise.
    fn applied_ns(&self) -> u64 {
        0
    }

    /// Returns the accesses since the store was opened.
    fn counted(&self) -> Counted {
        Counted::of(self.medium())
    }
}

/// Nanoseconds that the memory takes in addition to this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Slowness {
    pub(super) persist_ns: u64,
    pub(super) read_line_ns: u64,
    /// The emulated processor cache, for slow reads.
    pub(super) cache_bytes: u64,
}

/// A store to make or to open.
pub(super) struct Place<'a> {
    pub(super) dir: &'a Path,
    pub(super) slowness: Slowness,
    /// Pairs that the store will hold.
    pub(super) pair_count: u64,
    pub(super) is_new: bool,
    /// No thread works in the background: writers do its work.
    pub(super) is_alone: bool,
}

type Make = fn(&Place<'_>) -> Result<Box<dyn System>, Error>;

/// All stores by name. In `hikv` a thread of its own puts the keys in order; in `hikv-sync` the writer does that before
/// it returns.
pub(super) const ALL: [(&str, Make); 5] = [
    ("hikv", |place| place.hikv(true)),
    ("hikv-sync", |place| place.hikv(false)),
    ("nvstore", |place| place.tree::<NvTree<Memory, HostDram>>()),
    ("fptree", |place| place.tree::<FpTree<Memory, HostDram>>()),
    ("fptree-c", |place| place.cached_tree()),
];

impl Place<'_> {
    fn memory(&self) -> Result<Memory, Error> {
        let path = self.dir.join("region");
        let mapped = match self.is_new {
            true => Mapped::create(&path, REGION_BYTES, MapOptions::default())?,
            false => Mapped::open(&path, MapOptions::default())?,
        };
        let ticks = |ns| ticks(Duration::from_nanos(ns));
        let Slowness { persist_ns, read_line_ns, cache_bytes } = self.slowness;
        let latency = Latency {
            persist_ticks: ticks(persist_ns),
            read_block_ticks: ticks(read_line_ns),
            block_bytes: LINE_BYTES,
            cache_bytes,
            ..Latency::default()
        };
        slowed(mapped, latency)
    }

    /// Opens HiKV: its keys are in order when this returns.
    fn hikv(&self, has_backend: bool) -> Result<Box<dyn System>, Error> {
        let memory = self.memory()?;
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 32, region_bytes: REGION_BYTES };
        let store =
            if self.is_new { HiKv::format(memory, HostDram, &parameters) } else { HiKv::open(memory, HostDram) }?;
        let store = Arc::new(store.keeping_order(Ordered::new(1, HostDram)));
        while store.step()? == Progress::More {}
        store.catch_up(Early::Wait)?;
        let engine: Arc<dyn Engine> = store.clone();
        let backend = (has_backend && !self.is_alone).then(|| Worker::start(Arc::downgrade(&engine))).transpose()?;
        Ok(Box::new(HiKvStore { backend, store, applied_ns: AtomicU64::new(0) }))
    }

    fn tree<T: Tree<Memory, HostDram> + Sync + 'static>(&self) -> Result<Box<dyn System>, Error> {
        Ok(Box::new(Rival(self.opened::<T>()?)))
    }

    fn cached_tree(&self) -> Result<Box<dyn System>, Error> {
        let tree = self.opened::<FpTreeCached<Memory, HostDram>>()?;
        Ok(Box::new(Rival(tree.caching(CACHED_BYTES_A_PAIR * self.pair_count))))
    }

    fn opened<T: Tree<Memory, HostDram>>(&self) -> Result<T, Error> {
        let memory = self.memory()?;
        let sizes = Sizes { leaf_entry_count: T::LEAF_ENTRY_COUNT, region_bytes: REGION_BYTES };
        Ok(if self.is_new { T::format(memory, HostDram, &sizes) } else { T::open(memory, HostDram) }?)
    }
}

struct HiKvStore {
    /// The backend thread, which ends before the store does.
    backend: Option<Worker>,
    store: Arc<HiKv<Memory, HostDram>>,
    /// The time for which writers have done the backend's work.
    applied_ns: AtomicU64,
}

impl HiKvStore {
    /// Follows a write: wakes the backend thread if it is wanted, or does its work.
    fn written(&self) -> Result<(), Error> {
        match &self.backend {
            None => {
                let start = Instant::now();
                while self.store.apply()? > 0 {}
                self.applied_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            Some(backend) if self.store.wanted_threads() != WantedThreads::None => {
                backend.wake();
                self.store.assist_background()?;
            }
            Some(_) => {}
        }
        Ok(())
    }
}

impl System for HiKvStore {
    fn put(&self, key: &KeyBytes, value: &[u8]) -> Result<(), Error> {
        self.store.put(key, value)?;
        self.written()
    }

    fn get(&self, key: &KeyBytes, found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.get(key, &mut |_, _, value| found(value))?)
    }

    fn delete(&self, key: &KeyBytes) -> Result<bool, Error> {
        let is_deleted = self.store.delete(key)?;
        self.written()?;
        Ok(is_deleted)
    }

    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> Result<(), Error> {
        self.store.catch_up(Early::Wait)?;
        let mut cursor = ScanCursor::new(Bound::Included(from), Direction::Forward);
        while self.store.scan(&mut cursor, each)? {}
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        Ok(self.store.catch_up(Early::Wait)?)
    }

    fn used_bytes(&self) -> Result<[u64; 2], Error> {
        let stats = self.store.stats();
        let order_bytes = stats.order.map_or(0, |order| order.dram_bytes);
        Ok([stats.dram_bytes + order_bytes, stats.live_bytes])
    }

    fn medium(&self) -> &Memory {
        self.store.medium()
    }

    fn applied_ns(&self) -> u64 {
        self.applied_ns.load(Ordering::Relaxed)
    }
}

struct Rival<T>(T);

impl<T: Tree<Memory, HostDram> + Sync> System for Rival<T> {
    fn put(&self, key: &KeyBytes, value: &[u8]) -> Result<(), Error> {
        Ok(self.0.put(key, value)?)
    }

    fn get(&self, key: &KeyBytes, found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.0.get(key, found)?)
    }

    fn delete(&self, key: &KeyBytes) -> Result<bool, Error> {
        Ok(self.0.delete(key)?)
    }

    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> Result<(), Error> {
        Ok(self.0.scan(from, &mut |key, value| each(key, value))?)
    }

    fn settle(&self) -> Result<(), Error> {
        self.0.records().collect();
        Ok(())
    }

    fn used_bytes(&self) -> Result<[u64; 2], Error> {
        Ok([self.0.dram_bytes(), self.0.records().persistent_bytes()])
    }

    fn medium(&self) -> &Memory {
        self.0.records().medium()
    }
}
