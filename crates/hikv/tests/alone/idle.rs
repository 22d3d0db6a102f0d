//! An unused store needs no processor time: its threads sleep until they are woken. Reads and scans wake no thread.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use hikv::{Durability, Options, PutOptions, Store};

use crate::alone;

const THREAD_COUNT: usize = 3;
/// The observed time: several times any period that a polling thread would choose.
const WINDOW: Duration = Duration::from_secs(1);
/// A thread may free garbage long after the last write.
const DEADLINE: Duration = Duration::from_secs(60);

/// Returns how often each background thread of this process was scheduled, as the kernel counts it.
fn turns() -> Vec<u64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let workers = tasks.filter(|task| fs::read_to_string(task.join("comm")).unwrap().trim() == "hikv-worker");
    let turns = |books: String| books.split_whitespace().nth(2).expect("three fields").parse().unwrap();
    workers.map(|task| turns(fs::read_to_string(task.join("schedstat")).unwrap())).collect()
}

fn turns_in_a_window() -> u64 {
    // This sleep waits for nothing: it is the observed time. A longer one makes the test stricter. On a busy machine a
    // polling thread may miss its turn, but a sleeping thread never gets one, so correct code cannot fail.
    turns_while(|| thread::sleep(WINDOW))
}

fn turns_while(others_run: impl FnOnce()) -> u64 {
    let before = turns();
    assert_eq!(before.len(), THREAD_COUNT, "the threads are not found by their name");
    others_run();
    turns().iter().sum::<u64>() - before.iter().sum::<u64>()
}

fn busy_for_a_while() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Options::new()
        .tuning(|tuning| tuning.background_threads(THREAD_COUNT))
        .durability(Durability::Buffered)
        .open(dir.path())
        .unwrap();
    let key = |i: u32| i.to_be_bytes();
    (0..20_000).for_each(|i| store.put(key(i % 5_000), [0; 100]).unwrap());
    assert_eq!(store.ordered().unwrap().count::<&[u8]>(..).unwrap(), 5_000);
    (0..20_000).for_each(|i| store.put(key(i % 7_000), [1; 100]).unwrap());
    (dir, store)
}

fn quiesce() {
    let start = Instant::now();
    while turns_in_a_window() > 0 {
        assert!(start.elapsed() < DEADLINE, "the background threads do not come to rest: {:?}", turns());
    }
}

#[test]
fn an_idle_store_takes_no_processor_time() {
    let _turn = alone();
    let (_dir, store) = busy_for_a_while();
    quiesce();
    assert_eq!(store.stats().awake_worker_count, 0);
    let read = || {
        let ordered = store.ordered().unwrap();
        for i in 0..20_000_u32 {
            assert!(store.contains((i % 7_000).to_be_bytes()).unwrap());
        }
        (0..100).for_each(|_| assert_eq!(ordered.iter().unwrap().count(), 7_000));
    };
    // The first scan does not wait for another thread: it applies changes itself that were too few to wake one.
    assert_eq!(turns_while(read), 0, "there are no writes, and a background thread runs");
    // One thread sleeps until that time.
    store.put_with("late", "value", PutOptions::new().ttl(Duration::from_secs(3600))).unwrap();
    quiesce();
    drop(store);
}
