//! Stores larger than their memory: every operation of every engine, against a reference, within the limit.

use std::fs;
use std::path::Path;
use std::thread;

use fastrand::Rng;
use hikv::{Durability, EngineKind, Error, Options, PageStats, Store, WriteBatch};
use tempfile::TempDir;

use crate::alone;

const LIMIT_BYTES: u64 = 64 << 20;
/// Memory of the process that the limit does not count: threads, and pages that operations under way use.
const SLACK_BYTES: u64 = 24 << 20;
const VALUE_BYTES: usize = 1500;
const KEY_COUNT: usize = 80_000;
const THREAD_COUNT: usize = 4;
const OP_COUNT: usize = 20_000;
const ENGINES: [EngineKind; 4] = [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];

fn key(number: usize) -> [u8; 16] {
    *format!("key {number:012}").as_bytes().first_chunk().unwrap()
}

fn value(number: usize, version: u32) -> Vec<u8> {
    let mut value = vec![number as u8 ^ version as u8; VALUE_BYTES + version as usize % 64];
    value[..8].copy_from_slice(&(number as u64).to_le_bytes());
    value[8..12].copy_from_slice(&version.to_le_bytes());
    value
}

/// Returns the anonymous memory of this process.
fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).durability(Durability::Buffered).memory_bytes_max(LIMIT_BYTES)
}

/// A thread's keys, with the version of each; 0 if it is absent.
struct Part {
    thread: usize,
    versions: Vec<u32>,
}

impl Part {
    fn number(&self, i: usize) -> usize {
        i * THREAD_COUNT + self.thread
    }

    fn check(&self, store: &Store, i: usize) {
        let expected = (self.versions[i] > 0).then(|| value(self.number(i), self.versions[i]));
        let found = store.get(key(self.number(i))).unwrap();
        assert!(found.as_deref() == expected.as_deref(), "key {}", self.number(i));
    }

    fn put(&mut self, store: &Store, i: usize) {
        self.versions[i] += 1;
        store.put(key(self.number(i)), value(self.number(i), self.versions[i])).unwrap();
    }

    fn run(&mut self, store: &Store, random: &mut Rng, has_order: bool) {
        for _ in 0..OP_COUNT / THREAD_COUNT {
            let i = random.usize(..self.versions.len());
            match random.u32(..100) {
                0..60 => self.check(store, i),
                60..90 => self.put(store, i),
                90..98 => {
                    assert_eq!(store.delete(key(self.number(i))).unwrap(), self.versions[i] > 0);
                    self.versions[i] = 0;
                }
                _ if has_order => self.check_range(store, i),
                _ => self.check(store, i),
            }
        }
    }

    /// Checks the thread's keys among the next ones in order.
    fn check_range(&self, store: &Store, i: usize) {
        let mut next = i;
        for item in store.ordered().unwrap().range(key(self.number(i))..).unwrap().take(40) {
            let (found, bytes) = item.unwrap();
            let number: usize = std::str::from_utf8(&found[4..]).unwrap().parse().unwrap();
            if number % THREAD_COUNT == self.thread {
                let i = number / THREAD_COUNT;
                assert!(self.versions[next..i].iter().all(|&version| version == 0), "a key before {number} is missing");
                assert!(bytes[..] == value(number, self.versions[i])[..]);
                next = i + 1;
            }
        }
    }
}

/// Calls `work` for each part on its own thread.
fn each_part(parts: &mut [Part], work: impl Fn(&mut Part) + Sync) {
    thread::scope(|scope| {
        let threads: Vec<_> = parts.iter_mut().map(|part| scope.spawn(|| work(part))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn assert_within(store: &Store, before_bytes: u64, doing: &str) {
    let used_bytes = memory_bytes().saturating_sub(before_bytes);
    let pages = store.stats().journal.unwrap().pages.unwrap();
    assert!(used_bytes <= LIMIT_BYTES + SLACK_BYTES, "{doing}: {used_bytes} bytes, {pages:?}");
}

/// Returns a directory on a disk, where stores have a journal.
fn disk() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

#[test]
fn engines_serve_stores_larger_than_memory() {
    let _alone = alone();
    for engine in ENGINES {
        let dir = disk();
        let mut parts: Vec<_> =
            (0..THREAD_COUNT).map(|thread| Part { thread, versions: vec![0; KEY_COUNT / THREAD_COUNT] }).collect();
        let before_bytes = memory_bytes();
        let store = options(engine).open(dir.path()).unwrap();
        each_part(&mut parts, |part| (0..part.versions.len()).for_each(|i| part.put(&store, i)));
        assert_within(&store, before_bytes, "filled");
        let has_order = engine != EngineKind::RewoHash;
        each_part(&mut parts, |part| part.run(&store, &mut Rng::with_seed(part.thread as u64), has_order));
        assert_within(&store, before_bytes, "mixed");
        drop(store);
        let store = options(engine).open(dir.path()).unwrap();
        assert_within(&store, before_bytes, "opened");
        each_part(&mut parts, |part| part.run(&store, &mut Rng::with_seed(part.thread as u64 + 9), has_order));
        each_part(&mut parts, |part| (0..part.versions.len()).for_each(|i| part.check(&store, i)));
        assert_within(&store, before_bytes, "reopened");
        let pages = store.stats().journal.unwrap().pages.unwrap();
        assert!(pages.page_eviction_count > LIMIT_BYTES / 4096, "{pages:?}");
        drop(store);
    }
}

/// With the index in memory, a get reads the pages of its item that are not, and nothing else.
#[test]
fn uniform_gets_read_no_index_page() {
    const COUNT: usize = 400_000;
    const ITEM_BYTES: f64 = 288.0;
    /// The probability that an item is in two pages; it begins at a multiple of 32 bytes.
    const STRADDLING: f64 = (ITEM_BYTES - 32.0) / 4096.0;
    let _alone = alone();
    let dir = disk();
    let store = options(EngineKind::HiKv).open(dir.path()).unwrap();
    (0..COUNT).for_each(|number| store.put(key(number), [number as u8; 256]).unwrap());
    let mut random = Rng::with_seed(7);
    let mut get = |count: usize| {
        for _ in 0..count {
            let number = random.usize(..COUNT);
            assert_eq!(store.get(key(number)).unwrap().unwrap()[..], [number as u8; 256]);
        }
    };
    let pages = || store.stats().journal.unwrap().pages.unwrap();
    // Until the pages are those that gets leave in memory.
    get(COUNT);
    let before = pages();
    get(COUNT / 4);
    let after = pages();
    let resident_share =
        |pages: PageStats| (pages.page_resident_bytes - pages.page_index_bytes) as f64 / (COUNT as f64 * ITEM_BYTES);
    let share = (resident_share(before) + resident_share(after)) / 2.0;
    let reads_per_get = (after.page_load_count - before.page_load_count) as f64 / (COUNT / 4) as f64;
    assert!((0.1..0.9).contains(&share) && after.page_index_bytes > COUNT as u64 * 16, "{before:?} {after:?}");
    let most = (1.0 - share) * (1.0 + STRADDLING) * 1.02;
    assert!(reads_per_get <= most, "{reads_per_get} reads a get instead of {most}: {before:?} {after:?}");
}

#[test]
fn storage_in_memory_has_no_limit() {
    let _alone = alone();
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        let dir = tempfile::tempdir_in(memory).unwrap();
        let refused = options(EngineKind::HiKv).open(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("memory_bytes_max"), "{refused}");
        assert_eq!(
            fs::read_dir(dir.path())
                .unwrap()
                .filter(|file| file.as_ref().unwrap().path().ends_with("store.hikv"))
                .count(),
            0
        );
    }
}

/// The error names the option; a batch of the largest size that fits is written.
#[test]
fn batch_above_half_memory_is_refused() {
    const OP_COUNT: usize = 64;
    let _alone = alone();
    for engine in ENGINES {
        let dir = disk();
        let store = options(engine).open(dir.path()).unwrap();
        let op_bytes = LIMIT_BYTES as usize / 2 / OP_COUNT;
        let batch = |value_bytes: usize| {
            let mut batch = WriteBatch::new();
            (0..OP_COUNT).for_each(|i| _ = batch.put(key(i), vec![i as u8; value_bytes]));
            batch
        };
        let error = store.write(&batch(op_bytes)).unwrap_err();
        assert!(matches!(error, Error::BatchExceedsMemory { memory_bytes_max: LIMIT_BYTES, .. }), "{error:?}");
        assert!(error.to_string().contains("half of the memory of 67108864 bytes (memory_bytes_max)"), "{error}");
        assert_eq!(store.len().unwrap(), 0, "nothing of it is written");
        let value_bytes = op_bytes - 1024;
        store.write(&batch(value_bytes)).unwrap();
        (0..OP_COUNT).for_each(|i| assert!(*store.get(key(i)).unwrap().unwrap() == vec![i as u8; value_bytes]));
        drop(store);
    }
}
