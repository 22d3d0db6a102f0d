//! Transactions on a journal: when they wait for the disk, and for which durability.

use std::thread;
use std::time::Duration;

use hikv::{Durability, EngineKind, Error, Options, Store, Transact};
use tempfile::TempDir;

use super::has_order;

const THREAD_COUNT: u64 = 8;
const COMMIT_COUNT: u64 = 50;
/// Longer than the tests.
const INTERVAL: Duration = Duration::from_secs(60);

fn journals(level: Durability) -> impl Iterator<Item = (TempDir, Store)> {
    EngineKind::ALL.iter().filter(|kind| kind.name() != "toy").map(move |&engine| {
        let dir = tempfile::tempdir_in(".").unwrap();
        let options = Options::new().engine(engine).durability(level).sync_interval(INTERVAL).background(false);
        let store = options.open(dir.path()).unwrap();
        (dir, store)
    })
}

/// Reads a range, or a key if the engine has no order, and puts a key.
fn read_and_put(store: &Store, how: Transact, key: &str) {
    let by_range = has_order(store);
    let done = store.transact_with(how, |tx| {
        match by_range {
            true => assert!(tx.prefix(key)?.count() <= 1),
            false => _ = tx.get(key)?,
        }
        tx.put(key, "value")?;
        Ok::<_, Error>(())
    });
    done.unwrap();
}

/// If a commit waited with its gate closed, or with the gate lock held, no two of them would share a sync.
#[test]
fn commits_sync_outside_of_gates() {
    for how in [Transact::new(), Transact::new().exclusive_first()] {
        for (_dir, store) in journals(Durability::Power) {
            has_order(&store);
            let sync_count = || store.stats().journal.unwrap().log_sync_count;
            let before = sync_count();
            thread::scope(|scope| {
                for thread in 0..THREAD_COUNT {
                    let store = &store;
                    scope.spawn(move || (0..COMMIT_COUNT).for_each(|_| read_and_put(store, how, &thread.to_string())));
                }
            });
            let syncs = sync_count() - before;
            let commits = THREAD_COUNT * COMMIT_COUNT;
            assert!(syncs < commits, "{:?}: {syncs} syncs of {commits} commits", store.stats().engine);
        }
    }
}

#[test]
fn transactions_keep_the_handles_durability() {
    for (_dir, store) in journals(Durability::Buffered) {
        has_order(&store);
        let sync_count = || store.stats().journal.unwrap().log_sync_count;
        let durable = store.with_durability(Durability::Power).unwrap();
        let before = sync_count();
        for how in [Transact::new(), Transact::new().exclusive_first()] {
            read_and_put(&store, how, "buffered");
        }
        assert_eq!(sync_count(), before, "{:?}", store.stats().engine);
        for how in [Transact::new(), Transact::new().exclusive_first()] {
            let before = sync_count();
            read_and_put(&durable, how, "durable");
            assert!(sync_count() > before, "{:?}", store.stats().engine);
        }
        let (before, tx) = (sync_count(), durable.begin().unwrap());
        tx.put("begun", "value").unwrap();
        tx.commit().unwrap();
        assert!(sync_count() > before, "{:?}", store.stats().engine);
    }
}
