//! Figure 1: a hash index, a skip list and a B-tree in DRAM, one thread, without persistent memory. The indexes are the
//! standard library's and crossbeam's.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::Instant;

use crossbeam_skiplist::SkipMap;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::paper::Report;
use crate::point::Point;
use crate::records::{self, KEY_BYTES};
use crate::{Error, Settings};

const HASH: &str = "hash";
const SKIP_LIST: &str = "skip-list";
pub(super) const SYSTEMS: &[&str] = &[HASH, SKIP_LIST, "b-tree"];
pub(super) const WORKLOADS: [&str; 5] = ["index-put", "index-get", "index-update", "index-scan", "index-delete"];

/// Scans of a hash index sort all keys, so there are few.
const HASH_SCAN_COUNT: usize = 2;
const SCANNED_COUNT: usize = 50;
const SCAN_SHARE: usize = 20;

type Key = [u8; KEY_BYTES];

/// An index in DRAM.
trait Index {
    fn put(&mut self, key: Key, value: u64);
    fn get(&self, key: &Key) -> Option<u64>;
    fn delete(&mut self, key: &Key) -> bool;
    /// Returns the sum of the values of the next pairs from a key on.
    fn scan(&self, from: &Key, count: usize) -> u64;
}

impl Index for HashMap<Key, u64> {
    fn put(&mut self, key: Key, value: u64) {
        self.insert(key, value);
    }

    fn get(&self, key: &Key) -> Option<u64> {
        self.get(key).copied()
    }

    fn delete(&mut self, key: &Key) -> bool {
        self.remove(key).is_some()
    }

    fn scan(&self, from: &Key, count: usize) -> u64 {
        let mut later: Vec<_> = self.iter().filter(|(key, _)| *key >= from).collect();
        later.sort_unstable();
        later.into_iter().take(count).map(|(_, value)| value).sum()
    }
}

impl Index for BTreeMap<Key, u64> {
    fn put(&mut self, key: Key, value: u64) {
        self.insert(key, value);
    }

    fn get(&self, key: &Key) -> Option<u64> {
        self.get(key).copied()
    }

    fn delete(&mut self, key: &Key) -> bool {
        self.remove(key).is_some()
    }

    fn scan(&self, from: &Key, count: usize) -> u64 {
        self.range(*from..).take(count).map(|(_, value)| value).sum()
    }
}

impl Index for SkipMap<Key, u64> {
    fn put(&mut self, key: Key, value: u64) {
        self.insert(key, value);
    }

    fn get(&self, key: &Key) -> Option<u64> {
        self.get(key).map(|entry| *entry.value())
    }

    fn delete(&mut self, key: &Key) -> bool {
        self.remove(key).is_some()
    }

    fn scan(&self, from: &Key, count: usize) -> u64 {
        self.range(*from..).take(count).map(|entry| *entry.value()).sum()
    }
}

pub(super) fn run(settings: &Settings, report: &mut Report<'_>) -> Result<(), Error> {
    for round in 0..settings.rounds {
        for system in SYSTEMS.iter().copied().filter(|name| settings.wants(name)) {
            let index: &mut dyn Index = match system {
                HASH => &mut HashMap::<Key, u64>::new(),
                SKIP_LIST => &mut SkipMap::<Key, u64>::new(),
                _ => &mut BTreeMap::<Key, u64>::new(),
            };
            measure(system, index, settings, round, report);
        }
    }
    Ok(())
}

fn measure(system: &'static str, index: &mut dyn Index, settings: &Settings, round: usize, report: &mut Report<'_>) {
    let mut rng = SmallRng::seed_from_u64(round as u64);
    (0..settings.pairs).for_each(|record| index.put(records::key(record), record));
    let count = settings.operations.min(settings.pairs as usize);
    let drawn: Vec<u64> = (0..count).map(|_| rng.random_range(0..settings.pairs)).collect();
    let new = settings.pairs..settings.pairs + count as u64;
    let scan_count = if system == HASH { HASH_SCAN_COUNT } else { count.div_ceil(SCAN_SHARE) };
    for workload in WORKLOADS {
        let (start, mut wrong, mut operations) = (Instant::now(), 0, count);
        match workload {
            "index-put" => new.clone().for_each(|record| index.put(records::key(record), record)),
            "index-update" => drawn.iter().for_each(|&record| index.put(records::key(record), record)),
            "index-get" => {
                let is_wrong = |record: &&u64| index.get(&records::key(**record)) != Some(**record);
                wrong = drawn.iter().filter(is_wrong).count();
            }
            "index-delete" => wrong = new.clone().filter(|&record| !index.delete(&records::key(record))).count(),
            _ => {
                operations = scan_count.min(count);
                for &record in &drawn[..operations] {
                    black_box(index.scan(&records::key(record), SCANNED_COUNT));
                }
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / operations as f64;
        let (operations, wrong) = (operations as u64, wrong as u64);
        report(Point { ns, operations, wrong, ..Point::of(workload, system, 1.0, round) });
    }
}
