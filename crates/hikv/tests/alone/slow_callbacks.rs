//! Slow callbacks: the garbage that they keep, and the threads that they delay.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hikv::{Durability, EngineKind, Options, Store};
use tempfile::TempDir;

use crate::alone;

/// More garbage than fast readers ever leave.
const BOUND_BYTES: u64 = 64 << 20;

fn store() -> (TempDir, Store) {
    store_of(EngineKind::HiKv)
}

fn store_of(engine: EngineKind) -> (TempDir, Store) {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let store = Options::new().engine(engine).durability(Durability::Process).open(dir.path()).unwrap();
    store.put("read", "value").unwrap();
    (dir, store)
}

/// Calls `work` while a callback of the store is running.
fn beside_a_callback(store: &Store, work: impl FnOnce()) {
    let (began, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("slow reader".into());
        let read_slowly = move || {
            let read = |_: &[u8]| {
                began.send(()).unwrap();
                // Returns when the other end is dropped.
                let _ = may_end.recv();
            };
            store.in_place().get("read", read).unwrap().unwrap();
        };
        reader.spawn_scoped(scope, read_slowly).unwrap();
        has_begun.recv().unwrap();
        work();
        drop(end);
    });
}

/// For every engine whose readers keep replaced items.
#[test]
fn slow_callback_slows_writers_and_is_named() {
    let _alone = alone();
    for engine in [EngineKind::HiKv, EngineKind::Pmekv, EngineKind::RewoHash] {
        let (_dir, store) = store_of(engine);
        beside_a_callback(&store, || {
            let value = vec![1; 1 << 20];
            let is_slowed = |_| {
                store.put("key", &value).unwrap();
                store.stats().held_up_count > 0
            };
            assert!((0..100).any(is_slowed), "{engine}: 100 MiB of garbage slow no writer");
            let stats = store.stats();
            assert!(stats.garbage_bytes > BOUND_BYTES && stats.oldest_pin_ms > 0, "{stats:?}");
            let thread = stats.oldest_pin_thread.unwrap();
            assert!(thread.starts_with("slow reader ("), "{engine}: {thread}");
            // Cleared items are kept as long; `clear` does not wait for that.
            store.clear().unwrap();
            assert!(store.is_empty().unwrap());
        });
        let is_free = |_| {
            store.put("key", "value").unwrap();
            store.stats().garbage_bytes < BOUND_BYTES / 2
        };
        assert!((0..1_000_000).any(is_free), "{engine}: {:?}", store.stats());
    }
}

/// The background may free the kept items long after a callback has ended.
const DEADLINE: Duration = Duration::from_secs(60);

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "{what}: not within a minute");
        thread::yield_now();
    }
}

/// The background sleeps when the callback ends, and there are no writes.
#[test]
fn slow_callback_garbage_is_freed_without_writers() {
    let _alone = alone();
    let (_dir, store) = store();
    let taken_bytes = || fs::metadata(hikv::FrontEnd::of(&store).region_path()).unwrap().blocks() * 512;
    (0..20_000_u32).for_each(|number| store.put(number.to_be_bytes(), [7; 1_500]).unwrap());
    beside_a_callback(&store, || {
        store.clear().unwrap();
        wait_until("not all sleep", || store.stats().awake_worker_count == 0);
        assert!(taken_bytes() > 20 << 20);
    });
    wait_until("space given back", || taken_bytes() < 10 << 20);
    assert_eq!(store.stats().garbage_count, 0);
}
