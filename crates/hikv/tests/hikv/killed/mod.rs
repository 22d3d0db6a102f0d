//! A writing process is killed repeatedly, on one store: every acknowledged change must exist afterwards.
//!
//! The writer is this test, started again. Its threads make changes determined by the round's number, and send a byte
//! for each acknowledged change. The parent kills the writer after a random number of bytes and counts the bytes left
//! in the pipe. So it knows the value of every key; only each thread's next change may or may not have happened. Some
//! writers are killed while they open the store.
//!
//! The ignored tests run the same for longer: `cargo test -p hikv --release --test hikv killed -- --ignored`.

mod account;
mod changes;
mod writer;

use std::path::Path;

use hikv::{Durability, EngineKind, Options, Store};
use tempfile::TempDir;
use testkit::Extent;

use account::Account;
use changes::LARGE_BYTES;

/// The writer is killed after fewer acknowledged changes than this, about enough to change each key once.
const KILL_AFTER_MAX: usize = 3_000;
/// Every so many rounds the writer is killed immediately, perhaps while it opens or recovers the store.
const KILL_AT_ONCE_EVERY: u64 = 4;
/// Every so many rounds the store is read as the writer left it, so that the next writer recovers it.
const READ_ONLY_EVERY: u64 = 3;

/// The least limit of memory.
const MEMORY_BYTES: u64 = 64 << 20;

/// The store's medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// Memory, if there is such a file system.
    Memory,
    /// A disk, with a journal whose log is so small that it is checkpointed constantly.
    Journal(Durability),
    /// The same, with less memory than the store has pages, most of them in values that the writers only read.
    LittleMemory,
}

impl On {
    fn home(self) -> TempDir {
        let memory = Path::new("/dev/shm");
        if self == On::Memory && memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
    }

    /// One partition, so that its segments fill up and split.
    fn options(self) -> Options {
        const LOG_BYTES_MAX: u64 = 8 << 20;
        let options = Options::new().tuning(|tuning| tuning.partition_count(1).log_bytes_max(LOG_BYTES_MAX));
        match self {
            On::Memory => options.durability(Durability::Process),
            On::Journal(level) => options.durability(level),
            On::LittleMemory => options.durability(Durability::Buffered).memory_bytes_max(MEMORY_BYTES),
        }
    }

    /// Returns the number of values that the writers only read.
    fn standing_count(self) -> u64 {
        if self == On::LittleMemory { (MEMORY_BYTES + MEMORY_BYTES / 4) / LARGE_BYTES as u64 } else { 0 }
    }
}

fn rounds(test: &str, on: On, engine: EngineKind, count: u64) {
    if writer::write_if_started_for_it(&on.options(), on.standing_count()) {
        return;
    }
    let home = on.home();
    let path = home.path().join("store");
    let store = on.options().engine(engine).open(&path).unwrap();
    let (mut account, mut random) = (Account::default(), fastrand::Rng::with_seed(1));
    account.put_standing(&store, on.standing_count());
    drop(store);
    for round in 1..=count {
        let kill_after = if round % KILL_AT_ONCE_EVERY == 0 { 0 } else { random.usize(..KILL_AFTER_MAX) };
        let acknowledged = writer::run_and_kill(test, &path, round, kill_after);
        account.enter(round, acknowledged);
        let store = on.options().read_only(round.is_multiple_of(READ_ONLY_EVERY)).open(&path).unwrap();
        account.compare(&store);
        if engine != EngineKind::RewoHash {
            assert_in_order(&store, engine, kill_after > 0);
        }
        let pages = store.stats().journal.and_then(|journal| journal.pages);
        assert_eq!(pages.is_some_and(|pages| pages.page_eviction_count > 0), on == On::LittleMemory, "{pages:?}");
    }
}

/// Asserts that every key is in order. If the writer has changed anything, no order of an earlier close is trusted:
/// keys are collected and sorted, two steps for each key.
fn assert_in_order(store: &Store, engine: EngineKind, is_changed: bool) {
    let in_order = store.ordered().unwrap().count::<&[u8]>(..).unwrap();
    let stats = store.stats();
    assert_eq!(in_order, stats.items);
    assert!(engine != EngineKind::HiKv || !is_changed || stats.order_total == 2 * stats.items, "{stats:?}");
}

// Each test is also the writer that it kills.

#[test]
fn acknowledged_writes_survive_kill() {
    rounds("acknowledged_writes_survive_kill", On::Memory, EngineKind::HiKv, Extent::pick(12, 50));
}

#[test]
fn journal_in_page_cache_survives_kill() {
    let test = "journal_in_page_cache_survives_kill";
    rounds(test, On::Journal(Durability::Buffered), EngineKind::HiKv, Extent::pick(8, 30));
}

#[test]
fn store_larger_than_memory_survives_kill() {
    let test = "store_larger_than_memory_survives_kill";
    rounds(test, On::LittleMemory, EngineKind::HiKv, Extent::pick(4, 8));
}

#[test]
#[ignore = "minutes"]
fn acknowledged_writes_survive_thousands_of_kills() {
    let test = "acknowledged_writes_survive_thousands_of_kills";
    rounds(test, On::Memory, EngineKind::HiKv, 10_000);
}

#[test]
#[ignore = "minutes"]
fn synced_writes_survive_hundreds_of_kills() {
    let test = "synced_writes_survive_hundreds_of_kills";
    rounds(test, On::Journal(Durability::Power), EngineKind::HiKv, 300);
}

#[test]
#[ignore = "minutes"]
fn killed_stores_larger_than_memory_survive() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv] {
        rounds("killed_stores_larger_than_memory_survive", On::LittleMemory, engine, 100);
    }
}
