//! Reads through a cached table give the same results as a map. Values have lengths around the limits of copies and
//! slots. The tables have space for almost no item, for some, and for all. Other operations run in between: expiry,
//! batches, conditions, clears and compactions.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use hikv::{Clock, Durability, EngineKind, Options, PutOptions, Store, WriteBatch};
use tempfile::tempdir;

const KEY_LENS: [usize; 8] = [0, 1, 15, 16, 17, 26, 512, 513];
const VALUE_LENS: [usize; 12] = [0, 1, 9, 11, 12, 15, 26, 1_024, 1_025, 4_095, 4_096, 4_097];
const CACHE_BYTES: [u64; 4] = [1, 1 << 12, 1 << 17, 1 << 26];
/// The number of keys of each length.
const KEY_COUNT: u8 = 4;
const OP_COUNT: u32 = 3_000;

/// A value and its expiry.
type Held = (Vec<u8>, Option<u64>);

struct Checked {
    store: Store,
    clock: Clock,
    held: BTreeMap<Vec<u8>, Held>,
    random: Rng,
    number: u32,
}

fn open(path: &std::path::Path, engine: EngineKind, clock: &Clock, random: &mut Rng) -> Store {
    let cache_bytes = CACHE_BYTES[random.usize(..CACHE_BYTES.len())];
    let thread_count = if engine == EngineKind::RewoHash { random.usize(..2) } else { 0 };
    let options = Options::new().engine(engine).clock(clock.clone()).background(random.bool());
    let options = options.durability(Durability::Buffered).read_cache_bytes(cache_bytes);
    options.tuning(|tuning| tuning.read_cache_threads(thread_count)).open(path).unwrap()
}

impl Checked {
    fn key(&mut self) -> Vec<u8> {
        let len = KEY_LENS[self.random.usize(..KEY_LENS.len())];
        vec![self.random.u8(..KEY_COUNT); len]
    }

    fn value(&mut self) -> Vec<u8> {
        self.number += 1;
        let len = VALUE_LENS[self.random.usize(..VALUE_LENS.len())];
        self.number.to_le_bytes().into_iter().cycle().take(len).collect()
    }

    fn expected(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (value, past) = self.held.get(key)?;
        past.is_none_or(|past| self.clock.now_ms() < past).then(|| value.clone())
    }

    fn compare_all(&self) {
        let keys: Vec<Vec<u8>> =
            KEY_LENS.iter().flat_map(|&len| (0..KEY_COUNT).map(move |byte| vec![byte; len])).collect();
        let expected: Vec<_> = keys.iter().map(|key| self.expected(key)).collect();
        let values = self.store.multi_get(&keys).unwrap();
        assert_eq!(values.into_iter().map(|value| value.map(Vec::from)).collect::<Vec<_>>(), expected);
        for (key, expected) in keys.iter().zip(&expected) {
            assert_eq!(&self.store.get(key).unwrap().map(Vec::from), expected);
            assert_eq!(self.store.contains(key).unwrap(), expected.is_some());
        }
    }

    fn step(&mut self) {
        let (key, value) = (self.key(), self.value());
        match self.random.u32(..100) {
            0..30 => {
                self.store.put(&key, &value).unwrap();
                self.held.insert(key, (value, None));
            }
            30..38 => {
                let ms = self.random.u64(1..40);
                self.store.put_with(&key, &value, PutOptions::new().ttl(Duration::from_millis(ms))).unwrap();
                self.held.insert(key, (value, Some(self.clock.now_ms() + ms)));
            }
            38..50 => {
                let was_there = self.expected(&key).is_some();
                assert_eq!(self.store.delete(&key).unwrap(), was_there);
                self.held.remove(&key);
            }
            50..56 => self.batch(),
            56..64 => {
                let expected = self.expected(&key).filter(|_| self.random.bool());
                let is_equal = expected == self.expected(&key);
                assert_eq!(self.store.compare_and_swap(&key, expected.as_deref(), Some(&value)).unwrap(), is_equal);
                if is_equal {
                    let past = self.held.get(&key).and_then(|held| held.1).filter(|_| expected.is_some());
                    self.held.insert(key, (value, past));
                }
            }
            64..68 => {
                let (ms, is_there) = (self.random.u64(1..40), self.expected(&key).is_some());
                assert_eq!(self.store.expire(&key, Duration::from_millis(ms)).unwrap(), is_there);
                let past = self.clock.now_ms() + ms;
                self.held.get_mut(&key).into_iter().filter(|_| is_there).for_each(|held| held.1 = Some(past));
            }
            68..74 => self.clock.advance(Duration::from_millis(self.random.u64(1..15))),
            74..75 => {
                self.store.clear().unwrap();
                self.held.clear();
            }
            75..77 if self.store.features().compaction => drop(self.store.compact(|_| {}).unwrap()),
            _ => assert_eq!(self.store.get(&key).unwrap().map(Vec::from), self.expected(&key)),
        }
    }

    fn batch(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..self.random.u32(1..6) {
            let (key, value) = (self.key(), self.value());
            if self.random.bool() {
                batch.put(&key, &value);
                self.held.insert(key, (value, None));
            } else {
                batch.delete(&key);
                self.held.remove(&key);
            }
        }
        self.store.write(&batch).unwrap();
    }
}

/// A copy that kept the old place would have a version that no condition meets.
#[test]
fn copies_follow_items_that_compaction_moves() {
    const COUNT: u64 = 20_000;
    const KEPT_EVERY: usize = 20;
    let key = u64::to_be_bytes;
    for engine in [EngineKind::HiKv, EngineKind::RewoHash] {
        let dir = tempdir().unwrap();
        let options = Options::new().engine(engine).background(false).durability(Durability::Buffered);
        let store = options.read_cache_bytes(1 << 26).open(dir.path()).unwrap();
        (0..COUNT).for_each(|number| store.put(key(number), [7; 600]).unwrap());
        let kept: Vec<_> = (0..COUNT).step_by(KEPT_EVERY).collect();
        let is_kept = |number: &u64| number.is_multiple_of(KEPT_EVERY as u64);
        (0..COUNT).filter(|number| !is_kept(number)).for_each(|number| _ = store.delete(key(number)).unwrap());
        let versions = || kept.iter().map(|&number| store.get_item(key(number)).unwrap().unwrap().version).collect();
        let before: Vec<_> = versions();
        let moved_count = (0..10).map(|_| store.compact(|_| {}).unwrap().moved_items).sum::<u64>();
        let after: Vec<_> = versions();
        let changed_count = before.iter().zip(&after).filter(|(before, after)| before != after).count() as u64;
        assert!(moved_count > 0 && changed_count > 0, "{engine}: {moved_count} moved, {changed_count} changed");
        for &number in &kept {
            let tx = store.begin().unwrap();
            assert!(tx.get(key(number)).unwrap().is_some());
            tx.put(key(number), "new").unwrap();
            tx.commit().unwrap_or_else(|error| panic!("{engine}, key {number}: {error}"));
        }
    }
}

#[test]
fn cached_reads_match_a_map() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash] {
        for seed in 0..2 {
            let (dir, clock, mut random) = (tempdir().unwrap(), Clock::manual(1_000), Rng::with_seed(seed));
            let path = dir.path().join("store");
            let store = open(&path, engine, &clock, &mut random);
            let mut checked = Checked { store, clock, held: BTreeMap::new(), random, number: 0 };
            for number in 0..OP_COUNT {
                checked.step();
                if number % 250 == 0 {
                    checked.compare_all();
                }
                if number % 600 == 599 {
                    checked.store.close().unwrap();
                    checked.store = open(&path, engine, &checked.clock, &mut checked.random);
                    checked.compare_all();
                }
            }
            checked.compare_all();
        }
    }
}
