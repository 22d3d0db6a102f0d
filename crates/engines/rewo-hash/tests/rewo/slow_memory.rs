//! The exact cost of operations on slow memory: blocks read, fences, and the waits for blocks that arrive one after the
//! other. A clock that only waits advance replaces time.

use engine::Error;
use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use index::block_hash::SEGMENT_SLOT_COUNT;
use index::block_hash::layout::{FILLED_MAX, SLOT_COUNT};
use pmem::{Delays, DrivenClock, Latency, Medium, MediumError, PersistCounts, Probed, TickClock};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::splits::key;
use crate::subject::PARAMETERS;

type Slow = Probed<Sim, (Delays<DrivenClock>, PersistCounts)>;
type Store = RewoHash<Slow, HostDram>;

const READ_TICKS: u64 = 1_000;
const LATENCY: Latency = Latency {
    read_block_ticks: READ_TICKS,
    block_bytes: 256,
    cache_bytes: 1 << 16,
    persist_ticks: 0,
    read_ticks: 0,
    persist_block_ticks: 0,
    memory_read_ticks: 0,
};
const SEGMENT_COUNT: u32 = 64;
/// Operations that are counted together.
const COUNTED: u32 = 500;

/// The average cost of an operation.
#[derive(Debug)]
struct Cost {
    blocks: f64,
    fences: f64,
    /// Block reads that waited for one another; reads that overlap count once.
    waits: f64,
}

/// A table of a fixed size that is filled with keys in order.
struct Table {
    store: Store,
    next: u32,
}

impl Table {
    fn new() -> Table {
        let delays = Delays::by_clock(LATENCY, &HostDram, DrivenClock::default()).unwrap();
        let medium = Probed::with_probe(Sim::new(0, Model::Line), (delays, PersistCounts::default()));
        let parameters = Parameters { partition_count: SEGMENT_COUNT, ..PARAMETERS };
        let store = RewoHash::format(medium, HostDram, &parameters).unwrap().of_fixed_size();
        assert_eq!(store.table().segment_count(), u64::from(SEGMENT_COUNT));
        Table { store, next: 0 }
    }

    /// Puts new keys until there are `count` of them; returns the number of refused ones.
    fn fill(&mut self, count: u64) -> u32 {
        let mut refused = 0;
        while self.store.table().len() < count {
            match self.store.put(&key(self.next), b"11 bytes...") {
                Err(Error::Medium(MediumError::Limit { .. })) => refused += 1,
                done => done.unwrap(),
            }
            self.next += 1;
        }
        refused
    }

    /// Fills this share of the slots that inserts can use. Returns the number of refused inserts.
    fn fill_usable(&mut self, share: f64) -> u32 {
        let slots = u64::from(SEGMENT_COUNT) * SEGMENT_SLOT_COUNT / SLOT_COUNT as u64 * u64::from(FILLED_MAX);
        self.fill((slots as f64 * share) as u64)
    }

    fn counts(&self) -> [u64; 3] {
        let (delays, _) = self.store.medium().probe();
        let fence_count = self.store.medium().counts().unwrap().fence_count;
        [delays.block_read_count(), fence_count, delays.clock().now() / READ_TICKS]
    }

    fn cost(&mut self, mut work: impl FnMut(&mut Table, u32)) -> Cost {
        let before = self.counts();
        (0..COUNTED).for_each(|i| work(self, i));
        let after = self.counts();
        let [blocks, fences, waits] = [0, 1, 2].map(|i| (after[i] - before[i]) as f64 / f64::from(COUNTED));
        Cost { blocks, fences, waits }
    }

    fn insert_cost(&mut self) -> Cost {
        self.cost(|table, _| assert_eq!(table.fill(table.store.table().len() + 1), 0))
    }
}

/// An insert reads its two buckets at the same time, also where some inserts move an item.
#[test]
fn insert_cost_is_stable_until_full() {
    let mut table = Table::new();
    assert_eq!(table.fill_usable(0.6), 0);
    let six = table.insert_cost();
    assert_eq!(table.fill_usable(0.8), 0);
    let eight = table.insert_cost();
    assert!((1.8..2.05).contains(&six.blocks) && six.fences < 2.01, "{six:?}");
    assert!(eight.blocks < 1.15 * six.blocks && eight.fences < 1.05 * six.fences, "{eight:?}, at 0.6 {six:?}");
    assert!(six.waits < 1.05 && eight.waits < 1.1, "{eight:?}, at 0.6 {six:?}");
    // More than three quarters of all slots, of which updates keep one of eight free. First inserts are refused.
    assert!(table.fill_usable(0.88) < 10);
    let crowded = table.cost(|table, _| _ = table.fill(table.store.table().len() + 1));
    assert!(crowded.waits < 2.0 * six.waits && crowded.fences < 1.25 * six.fences, "{crowded:?}, at 0.6 {six:?}");
}

#[test]
fn updates_and_deletes_fetch_buckets_together() {
    let mut table = Table::new();
    assert_eq!(table.fill_usable(0.8), 0);
    let update = table.cost(|table, i| table.store.put(&key(i * 7), b"other bytes").unwrap());
    assert!(update.waits <= 1.0 && update.blocks <= 2.0 && update.fences == 2.0, "{update:?}");
    let get = table.cost(|table, i| assert!(table.store.get(&key(i * 5 + 3), &mut |_, _, _| {}).unwrap()));
    assert!(get.waits <= 1.0 && get.blocks <= 2.0 && get.fences == 0.0, "{get:?}");
    let delete = table.cost(|table, i| assert!(table.store.delete(&key(i * 3 + 1)).unwrap()));
    assert!(delete.waits <= 1.0 && delete.blocks <= 2.0 && delete.fences == 1.0, "{delete:?}");
}
