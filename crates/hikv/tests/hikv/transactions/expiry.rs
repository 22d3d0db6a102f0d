//! Transactions and items that expire.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use hikv::{Clock, Options, PutOptions, Transact};

use super::ok;

/// The callback for expired keys runs when its writer's window is shut, and may use transactions.
#[test]
fn callbacks_may_use_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(1000);
    let store = Options::new().clock(clock.clone()).background(false).open(dir.path()).unwrap();
    let met = Arc::new(Mutex::new(Vec::new()));
    let (called, inner) = (Arc::clone(&met), store.clone());
    let callback = move |key: &[u8]| {
        let result = inner.transact(|tx| {
            tx.put("last expired", key)?;
            ok(tx.get("count")?.map_or(0, |count| count.len()))
        });
        called.lock().unwrap().push((key.to_vec(), result.is_ok()));
    };
    store.on_expired(Some(Arc::new(callback))).unwrap();
    store.put_with("short", "1", PutOptions::new().ttl(Duration::from_secs(5))).unwrap();
    clock.advance(Duration::from_secs(6));
    store.put("short", "2").unwrap();
    let met = met.lock().unwrap().clone();
    assert_eq!(met, [(b"short".to_vec(), true)]);
    assert_eq!(store.get("last expired").unwrap().as_deref(), Some(&b"short"[..]));
}

/// A commit that holds the gate lock removes an expired item: the callback runs when the lock is released. No
/// background thread removes the item before.
#[test]
fn callbacks_of_commits_may_write() {
    for options in [Transact::new(), Transact::new().exclusive_first()] {
        let (done, is_done) = mpsc::channel();
        // The thread would wait for itself for ever.
        thread::spawn(move || {
            let dir = tempfile::tempdir().unwrap();
            let clock = Clock::manual(1000);
            let store = Options::new().clock(clock.clone()).background(false).open(dir.path()).unwrap();
            let inner = store.clone();
            let callback = move |key: &[u8]| {
                inner.put("last expired", key).unwrap();
                inner.transact(|tx| tx.put("counted", tx.prefix("counted")?.count().to_string())).unwrap();
            };
            store.on_expired(Some(Arc::new(callback))).unwrap();
            store.put_with("short", "1", PutOptions::new().ttl(Duration::from_secs(5))).unwrap();
            clock.advance(Duration::from_secs(6));
            store
                .transact_with(options, |tx| {
                    assert_eq!(tx.prefix("none")?.count(), 0);
                    tx.put("short", "2")
                })
                .unwrap();
            done.send([store.get("last expired").unwrap(), store.get("counted").unwrap()]).unwrap();
        });
        let found = is_done.recv_timeout(Duration::from_secs(60)).expect("the callback waits for its own thread");
        assert_eq!(found.each_ref().map(Option::as_deref), [Some(&b"short"[..]), Some(b"0")]);
    }
}

/// An item expires between a body's read and the commit: the body runs again and finds it absent.
#[test]
fn expiry_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(1000);
    let store = Options::new().clock(clock.clone()).open(dir.path()).unwrap();
    for options in [Transact::new(), Transact::new().exclusive_first()] {
        for by_range in [false, true] {
            store.put_with("short", "1", PutOptions::new().ttl(Duration::from_secs(5))).unwrap();
            let run_count = AtomicU32::new(0);
            let found = store.transact_with(options, |tx| {
                let is_there = if by_range { tx.prefix("short")?.next().is_some() } else { tx.contains("short")? };
                if run_count.fetch_add(1, Ordering::Relaxed) == 0 {
                    clock.advance(Duration::from_secs(6));
                }
                tx.put("found", if is_there { "yes" } else { "no" })?;
                ok(is_there)
            });
            assert!(!found.unwrap());
            assert_eq!(run_count.into_inner(), 2);
        }
    }
}
