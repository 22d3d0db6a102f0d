//! A process that writes is killed again and again, on one store: whatever it acknowledged is there afterwards.
//!
//! The writer is this test, started anew. Its threads make changes that follow from the round's number, and send a byte
//! for each one that the store has acknowledged. The parent kills the writer after a random count of those bytes, counts
//! what else was still in the pipe, and so knows of every key what it holds; only a thread's next change may have
//! happened or not. Some writers are killed while they open.
//!
//! The tests that are ignored are the same for longer: `cargo test -p hikv --release --test hikv killed -- --ignored`.

mod account;
mod changes;
mod writer;

use std::path::Path;

use hikv::{Durability, Options, Store};
use tempfile::TempDir;

use account::Account;

/// The writer is killed after fewer acknowledged changes than this: about as many as make each key change once.
const KILL_AFTER_MAX: usize = 3_000;
/// In one round of so many it is killed at once, perhaps while it opens or recovers the store.
const KILL_AT_ONCE_EVERY: u64 = 4;
/// In one round of so many the store is read as the writer left it, so that the next writer recovers it.
const READ_ONLY_EVERY: u64 = 3;

/// What the store lies on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// Memory, where there is such a file system.
    Memory,
    /// A disk, with a journal whose log is so small that it is checkpointed all the time.
    Journal(Durability),
}

impl On {
    fn home(self) -> TempDir {
        let memory = Path::new("/dev/shm");
        if self == On::Memory && memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
    }

    /// One partition, so that its segments fill up and split.
    fn options(self) -> Options {
        const LOG_BYTES_MAX: u64 = 8 << 20;
        let options = Options::new().partition_count(1).log_bytes_max(LOG_BYTES_MAX);
        match self {
            On::Memory => options.durability(Durability::Process),
            On::Journal(level) => options.durability(level),
        }
    }
}

fn rounds(test: &str, on: On, count: u64) {
    if writer::write_if_started_for_it(&on.options()) {
        return;
    }
    let home = on.home();
    let path = home.path().join("store");
    drop(on.options().open(&path).unwrap());
    let (mut account, mut random) = (Account::default(), fastrand::Rng::with_seed(1));
    for round in 1..=count {
        let kill_after = if round % KILL_AT_ONCE_EVERY == 0 { 0 } else { random.usize(..KILL_AFTER_MAX) };
        let acknowledged = writer::run_and_kill(test, &path, round, kill_after);
        account.enter(round, acknowledged);
        let store = on.options().read_only(round.is_multiple_of(READ_ONLY_EVERY)).open(&path).unwrap();
        account.compare(&store);
        assert_in_order(&store, kill_after > 0);
    }
}

/// Every key is in order. Where the writer has changed anything, nothing is trusted that an earlier close has left: keys
/// are collected and sorted, which is two steps for each.
fn assert_in_order(store: &Store, is_changed: bool) {
    let in_order = store.ordered().unwrap().count::<&[u8]>(..).unwrap();
    let stats = store.stats();
    assert_eq!(in_order, stats.items);
    assert!(!is_changed || stats.order_total == 2 * stats.items, "{stats:?}");
}

// Each test is also the writer that it kills.

#[test]
fn acknowledged_writes_survive_kill() {
    rounds("acknowledged_writes_survive_kill", On::Memory, 50);
}

#[test]
fn journal_in_page_cache_survives_kill() {
    let test = "journal_in_page_cache_survives_kill";
    rounds(test, On::Journal(Durability::Buffered), 30);
}

#[test]
#[ignore = "minutes"]
fn acknowledged_writes_survive_thousands_of_kills() {
    rounds("acknowledged_writes_survive_thousands_of_kills", On::Memory, 10_000);
}

#[test]
#[ignore = "minutes"]
fn synced_writes_survive_hundreds_of_kills() {
    rounds("synced_writes_survive_hundreds_of_kills", On::Journal(Durability::Power), 300);
}
