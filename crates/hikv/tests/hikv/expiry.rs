//! Keys that expire, through the library.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use hikv::{Clock, Durability, EngineKind, Expires, OpenError, Options, PutOptions, Store, Ttl};
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);

struct Timed {
    store: Store,
    clock: Clock,
    _dir: TempDir,
}

/// A value that a reader reads piece by piece.
const LARGE_VALUE_BYTES: usize = 300_000;

/// Returns a store with a clock that stands still.
fn timed() -> Timed {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Clock::manual(1_000_000));
    let store = Options::new().clock(clock.clone()).open(dir.path()).unwrap();
    Timed { store, clock, _dir: dir }
}

fn keys(store: &Store) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let each = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
    };
    store.for_each(each).unwrap();
    keys
}

#[test]
fn key_that_has_expired_is_absent_everywhere() {
    let Timed { store, clock, _dir } = timed();
    store.put("b", "stays").unwrap();
    store.put_with("a", [7; LARGE_VALUE_BYTES], PutOptions::new().ttl(SECOND)).unwrap();
    store.put_with("c", "goes", PutOptions::new().ttl(SECOND)).unwrap();
    let ordered = store.ordered().unwrap();
    assert_eq!((ordered.count::<&str>(..).unwrap(), keys(&store).len()), (3, 3));
    let mut reader = store.reader("a").unwrap().unwrap();
    clock.advance(SECOND);
    reader.read_to_end(&mut Vec::new()).unwrap_err();
    let mut value = b"before".to_vec();
    assert!(!store.get_into("a", &mut value).unwrap() && value.is_empty());
    assert!(store.reader("a").unwrap().is_none() && !store.contains("a").unwrap());
    assert_eq!(store.in_place().get("a", <[u8]>::len).unwrap(), None);
    assert_eq!(store.multi_get(["a", "b", "c"]).unwrap(), [None, Some(b"stays".to_vec().into()), None]);
    assert_eq!(keys(&store), [b"b"]);
    assert_eq!(ordered.first().unwrap(), ordered.last().unwrap());
    assert_eq!((ordered.ceiling("c").unwrap(), ordered.floor("a").unwrap()), (None, None));
    assert_eq!(ordered.iter().unwrap().map(|item| item.unwrap().0).collect::<Vec<_>>(), [b"b"]);
    assert_eq!((ordered.count::<&str>(..).unwrap(), ordered.count("a".."b").unwrap()), (1, 0));
    assert_eq!((store.ttl("a").unwrap(), store.expire("a", Expires::Never).unwrap()), (None, false));
    assert!(!store.expire("a", SECOND).unwrap() && !store.delete("a").unwrap());
    assert!(!store.compare_and_swap("c", Some(b"goes"), None).unwrap());
    assert!(store.insert_if_absent("c", "new").unwrap());
    assert_eq!(
        (store.get("c").unwrap(), store.ttl("c").unwrap()),
        (Some(b"new".to_vec().into()), Some(Ttl::Unlimited))
    );
    assert_eq!(ordered.delete_range::<&str>(..).unwrap(), 2);
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

#[test]
fn changes_keep_expiry_and_puts_clear_it() {
    let Timed { store, clock, _dir } = timed();
    store.put_with("number", "1", PutOptions::new().expires(UNIX_EPOCH + 1005 * SECOND)).unwrap();
    assert_eq!(store.ttl("number").unwrap(), Some(Ttl::Left(5 * SECOND)));
    assert_eq!(store.increment("number", 2).unwrap(), 3);
    assert!(store.compare_and_swap("number", Some(b"3"), Some(b"4")).unwrap());
    clock.advance(SECOND);
    assert_eq!(store.ttl("number").unwrap(), Some(Ttl::Left(4 * SECOND)));
    store.multi_put([("number", "5")]).unwrap();
    assert_eq!(store.ttl("number").unwrap(), Some(Ttl::Unlimited));
    assert!(store.expire("number", UNIX_EPOCH + 1002 * SECOND).unwrap());
    clock.advance(SECOND);
    assert_eq!(store.increment("number", 1).unwrap(), 1, "it begins anew");
}

#[test]
fn expiries_outlive_the_process_that_set_them() {
    let Timed { store, clock, _dir: dir } = timed();
    store.put_with("early", "value", PutOptions::new().ttl(SECOND)).unwrap();
    store.put_with("late", "value", PutOptions::new().ttl(9 * SECOND)).unwrap();
    store.close().unwrap();
    clock.advance(SECOND);
    let read_only = Options::new().clock(clock.clone()).read_only(true).open(dir.path()).unwrap();
    assert_eq!(keys(&read_only), [b"late"]);
    drop(read_only);
    let store = Options::new().clock(clock).open(dir.path()).unwrap();
    assert_eq!((keys(&store), store.ttl("late").unwrap()), (vec![b"late".to_vec()], Some(Ttl::Left(8 * SECOND))));
}

/// There are no later writes, and the worker sleeps forever: the write wakes it, and then the system's clock does.
#[test]
fn sleeping_worker_wakes_for_what_expires() {
    for &engine in EngineKind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let store = Options::new().engine(engine).open(dir.path()).unwrap();
        if !store.features().expiry {
            continue;
        }
        store.put("stays", "value").unwrap();
        let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
            let deadline = Instant::now() + 50 * SECOND;
            while !is_so() {
                assert!(Instant::now() < deadline, "{engine}: {what} in 50 seconds");
                thread::yield_now();
            }
        };
        wait_until("not all sleep", &|| store.stats().awake_worker_count == 0);
        store.put_with("late", "value", PutOptions::new().ttl(3600 * SECOND)).unwrap();
        store.put_with("goes", "value", PutOptions::new().ttl(SECOND / 20)).unwrap();
        wait_until("nothing was reaped", &|| store.stats().reaped_count > 0);
        assert_eq!((store.len().unwrap(), store.stats().reaped_count), (2, 1), "{engine}");
    }
}

/// Only writers reap, at most one step for each put, whatever the callback puts.
#[test]
fn callbacks_that_put_block_no_writer() {
    const CALL_COUNT_MAX: u64 = 200_000;
    for &engine in EngineKind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().engine(engine).background(false).durability(Durability::Process);
        let store = Arc::new(options.open(dir.path()).unwrap());
        if !store.features().expiry {
            continue;
        }
        assert!(store.is_empty().unwrap(), "what a store holds is known before its writers reap");
        let (call_count, of_callback) = (Arc::new(AtomicU64::new(0)), Arc::downgrade(&store));
        let counted = Arc::clone(&call_count);
        let put_again = move |_: &[u8]| {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            let store = of_callback.upgrade().filter(|_| call < CALL_COUNT_MAX);
            store.into_iter().for_each(|store| {
                store.put_with(format!("again {call}"), "v", PutOptions::new().ttl(Duration::ZERO)).unwrap()
            });
        };
        store.on_expired(Some(Arc::new(put_again))).unwrap();
        for number in 0..20_000u64 {
            let before = call_count.load(Ordering::Relaxed);
            store.put_with(number.to_be_bytes(), "value", PutOptions::new().ttl(Duration::ZERO)).unwrap();
            let calls = call_count.load(Ordering::Relaxed) - before;
            assert!(calls < 10_000, "{engine}: {calls} calls by one put");
        }
        assert!(call_count.load(Ordering::Relaxed) > 0, "{engine}: no put has reaped");
    }
}

/// The callback runs in the background, which then closes the store after its running work, and not before.
#[test]
fn last_handle_may_drop_in_callback() {
    const COUNT: u64 = 100;
    let (dir, clock) = (tempfile::tempdir().unwrap(), Clock::manual(1_000_000));
    // All keys are in one segment, so they are reaped in one step.
    let store =
        Options::new().clock(clock.clone()).tuning(|tuning| tuning.partition_count(1)).open(dir.path()).unwrap();
    store.put("stays", "value").unwrap();
    (0..COUNT).for_each(|i| store.put_with(i.to_be_bytes(), "goes", PutOptions::new().ttl(SECOND)).unwrap());
    let handle = Mutex::new(Some(store.clone()));
    let (was_reported, reported) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let may_go = Mutex::new(may_go);
    let callback = move |_: &[u8]| {
        // This returns when the test releases it, or has ended.
        let _ = may_go.lock().unwrap().recv();
        drop(handle.lock().unwrap().take());
        was_reported.send(()).unwrap();
    };
    store.on_expired(Some(Arc::new(callback))).unwrap();
    clock.advance(SECOND);
    // The put wakes the background.
    store.put_with("wakes it", "value", PutOptions::new().ttl(60 * SECOND)).unwrap();
    drop(store);
    go.send(()).unwrap();
    reported.recv().unwrap();
    let early = Options::new().clock(clock.clone()).open(dir.path());
    assert!(matches!(early, Err(OpenError::Locked { .. })), "the store is open while another handle works on it");
    drop(go);
    let store = loop {
        match Options::new().clock(clock.clone()).open(dir.path()) {
            Err(OpenError::Locked { .. }) => thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    assert_eq!(reported.iter().count() as u64, COUNT - 1);
    assert_eq!((store.verify(|_| {}).unwrap().damage, store.len().unwrap()), (vec![], 2));
}
