//! Invalid options, and a close while other handles exist.

use std::time::Duration;

use hikv::{Decision, Durability, EngineKind, Error, Expires, MediumError, OpenError, Options, Store, WriteBatch};
use tempfile::tempdir;

/// Each option is refused by an error with the value and the limit, before anything is allocated or created.
#[test]
fn numbers_beyond_their_limits_are_refused() {
    let dir = tempdir().unwrap();
    let (new, second) = (Options::new, Duration::from_secs(1));
    let refused = [
        (new().tuning(|tuning| tuning.order_queues(1, 1 << 40)), "1 queues of 1099511627776", "4194304"),
        (new().tuning(|tuning| tuning.order_queues(usize::MAX, 1 << 63)), "queues of 9223372036854775808", "4194304"),
        (
            new().tuning(|tuning| tuning.background_threads(usize::MAX)),
            "18446744073709551615 background threads",
            "256",
        ),
        (new().read_cache_bytes(u64::MAX), "18446744073709551615 bytes", "137438953472"),
        (
            new().read_cache_bytes(1 << 20).tuning(|tuning| tuning.read_cache_threads(usize::MAX)),
            "18446744073709551615 threads",
            "16",
        ),
        (new().region_bytes_max(u64::MAX), "18446744073709551615 bytes", "1099511627776"),
        (new().tuning(|tuning| tuning.partition_count(1 << 31)), "2147483648 partitions", "256"),
        (new().tuning(|tuning| tuning.tree_order(usize::MAX)), "order 18446744073709551615", "255"),
        (new().sync_interval(Duration::MAX), "sync interval of 18446744073709551615", "2592000s"),
        (
            new().emulation(|emulation| emulation.persist_delay(Duration::MAX)),
            "delay of persists of 18446744073709551615",
            "1s",
        ),
        (new().emulation(|emulation| emulation.read_delay(2 * second)), "delay of reads of 2s", "1s"),
        (
            new().emulation(|emulation| emulation.block_delays(256, Duration::MAX, second)),
            "delay of blocks that are read",
            "1s",
        ),
        (
            new().emulation(|emulation| emulation.processor_cache(u64::MAX, second)),
            "cache of 18446744073709551615 bytes",
            "17179869184",
        ),
    ];
    for (options, value, limit) in refused {
        let path = dir.path().join("store");
        let Err(OpenError::Option { what }) = options.open(&path) else { panic!("{value} is taken") };
        assert!(what.contains(value) && what.contains(limit), "{what}");
        assert!(!path.exists(), "{what}: and a store was created");
    }
}

#[test]
fn the_largest_numbers_are_taken() {
    let dir = tempdir().unwrap();
    for (number, options) in [
        Options::new().tuning(|tuning| tuning.order_queues(64, 1 << 16).background_threads(256)),
        Options::new().tuning(|tuning| tuning.log_bytes_max(128 << 30)).sync_interval(Duration::from_secs(24 * 3600)),
        Options::new()
            .engine(EngineKind::RewoHash)
            .read_cache_bytes(1 << 20)
            .tuning(|tuning| tuning.read_cache_threads(16)),
    ]
    .into_iter()
    .enumerate()
    {
        let store = options.durability(Durability::Buffered).open(dir.path().join(number.to_string())).unwrap();
        store.put("key", "value").unwrap();
        store.close().unwrap();
    }
}

fn kept_by(store: Store) -> String {
    match store.close() {
        Err(Error::StillOpen { kept_by }) => kept_by.into(),
        closed => panic!("{closed:?}"),
    }
}

#[test]
fn close_reports_what_keeps_store_open() {
    let dir = tempdir().unwrap();
    let open = || Options::new().durability(Durability::Buffered).open(dir.path());
    let store = open().unwrap();
    store.put("key", "value").unwrap();
    let (other, snapshot) = (store.clone(), store.snapshot().unwrap());
    assert_eq!(kept_by(store.clone()), "2 handles, 1 snapshot");
    assert_eq!(kept_by(store), "1 handle, 1 snapshot");
    assert!(matches!(open(), Err(OpenError::Locked { .. })));
    drop(snapshot);
    other.close().unwrap();
    // The store is closed if another opening gets the lock.
    open().unwrap().close().unwrap();
}

#[test]
fn last_close_closes_the_store() {
    let dir = tempdir().unwrap();
    let open = || Options::new().durability(Durability::Buffered).open(dir.path());
    for _ in 0..50 {
        let store = open().unwrap();
        let handles = [store.clone(), store.clone(), store];
        let closed: Vec<_> = std::thread::scope(|scope| {
            let closing: Vec<_> = handles.into_iter().map(|handle| scope.spawn(|| handle.close())).collect();
            closing.into_iter().map(|closing| closing.join().unwrap()).collect()
        });
        assert!(closed.iter().any(Result::is_ok), "{closed:?}");
        assert!(closed.iter().all(|closed| matches!(closed, Ok(()) | Err(Error::StillOpen { .. }))), "{closed:?}");
        open().unwrap().close().unwrap();
    }
}

/// Every write to a store that is open for reading is refused, whether it would change anything or not.
#[test]
fn read_only_stores_refuse_ineffective_writes() {
    type Write = fn(&Store) -> Result<(), Error>;
    let writes: [(&str, Write); 9] = [
        ("delete", |store| store.delete("absent").map(drop)),
        ("expire", |store| store.expire("absent", Duration::from_secs(1)).map(drop)),
        ("persist", |store| store.expire("absent", Expires::Never).map(drop)),
        ("update", |store| store.update("absent", |_| Decision::Keep).map(drop)),
        ("update of a present key", |store| store.update("key", |_| Decision::Keep).map(drop)),
        ("batch", |store| store.write(&WriteBatch::new())),
        ("clear", |store| store.clear()),
        ("compact", |store| store.compact(|_| {}).map(drop)),
        ("swap", |store| store.compare_and_swap("absent", Some(b"other"), None).map(drop)),
    ];
    for &engine in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        let dir = tempdir().unwrap();
        let store = Options::new().engine(engine).open(dir.path()).unwrap();
        store.put("key", "value").unwrap();
        store.close().unwrap();
        let store = Store::open_read_only(dir.path()).unwrap();
        for (name, write) in writes {
            let refused = write(&store);
            assert!(matches!(refused, Err(Error::Medium(MediumError::ReadOnly))), "{engine}: {name}: {refused:?}");
        }
    }
}
