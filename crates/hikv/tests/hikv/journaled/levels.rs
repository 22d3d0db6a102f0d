//! Writes at other levels, and writes that the caller does not wait for. In a store opened at `power`, only a wait or
//! a waker syncs the log, so writes that are not durable yet stay so.

use std::sync::mpsc;
use std::thread;

use hikv::{Durability, Error, Options, Store, WriteBatch};

use crate::journaled::{Place, buffered};

fn powerful() -> Options {
    Options::new().tuning(|tuning| tuning.partition_count(1)).durability(Durability::Power)
}

fn put_later(store: &Store, key: &str, value: &str) -> hikv::Ticket {
    let (put, ticket) = store.deferred(|store| store.put(key, value));
    put.unwrap();
    ticket
}

#[test]
fn deferred_write_is_visible_then_durable() {
    let place = Place::new();
    let store = place.open(&powerful());
    let ticket = put_later(&store, "key", "value");
    assert!(!store.is_durable(ticket).unwrap());
    let (found, seen) = store.deferred(|store| store.get("key"));
    assert_eq!(found.unwrap().as_deref(), Some(&b"value"[..]));
    assert!(!store.is_durable(seen).unwrap(), "who saw it owes as much as who wrote it");
    store.wait(ticket).unwrap();
    assert!(store.is_durable(ticket).unwrap() && store.is_durable(seen).unwrap());
}

#[test]
fn undeferred_reader_waits() {
    let place = Place::new();
    let store = place.open(&powerful());
    type Read = fn(&Store);
    let reads: [(&str, Read); 6] = [
        ("get", |store| assert!(store.get("key").unwrap().is_some())),
        ("an absent key", |store| assert!(store.get("gone").unwrap().is_none())),
        ("walk", |store| assert!(store.for_each(|_, _| ()).is_ok())),
        ("scan", |store| assert!(store.ordered().unwrap().iter().unwrap().count() > 0)),
        ("failed compare", |store| assert!(!store.insert_if_absent("key", "other").unwrap())),
        ("delete of nothing", |store| assert!(!store.delete("gone").unwrap())),
    ];
    for (name, read) in reads {
        store.put("gone", "x").unwrap();
        let deleted = store.deferred(|store| store.delete("gone")).1;
        let put = put_later(&store, "key", name);
        assert!(!store.is_durable(put).unwrap());
        if name.contains("absent") || name.contains("nothing") {
            read(&store);
            assert!(store.is_durable(deleted).unwrap(), "{name}");
        } else {
            read(&store);
            assert!(store.is_durable(put).unwrap(), "{name}");
        }
    }
}

#[test]
fn reader_waits_only_for_what_it_met() {
    let place = Place::new();
    let store = place.open(&powerful());
    let first = put_later(&store, "first", "1");
    store.wait(first).unwrap();
    let second = put_later(&store, "second", "2");
    let (found, seen) = store.deferred(|store| store.get("first"));
    assert!(found.unwrap().is_some());
    assert!(store.is_durable(seen).unwrap(), "the first was durable when it was read");
    assert_eq!(store.get("first").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(!store.is_durable(second).unwrap(), "the second was not requested");
}

#[test]
fn batch_is_deferred_as_one() {
    let place = Place::new();
    let store = place.open(&powerful());
    store.put("old", "x").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").put("b", "2").delete("old");
    let (written, ticket) = store.deferred(|store| store.write(&batch));
    written.unwrap();
    assert!(!store.is_durable(ticket).unwrap());
    let (found, seen) = store.deferred(|store| store.get("b"));
    assert_eq!(found.unwrap().as_deref(), Some(&b"2"[..]));
    assert!(!store.is_durable(seen).unwrap());
    assert_eq!(store.get("old").unwrap(), None);
    assert!(store.is_durable(ticket).unwrap(), "that the key is gone was not told before it was durable");
}

/// Removed entries free their slots, and splits keep track of writes that are not durable.
#[test]
fn all_deferred_changes_are_there() {
    let place = Place::new();
    let store = place.open(&powerful());
    const COUNT: u32 = 20_000;
    let ((), ticket) = store.deferred(|store| {
        for i in 0..COUNT {
            store.put(i.to_be_bytes(), i.to_le_bytes()).unwrap();
            if i % 3 == 0 {
                assert!(store.delete((i / 2).to_be_bytes()).unwrap() || i / 2 % 3 == 0);
            }
        }
    });
    store.wait(ticket).unwrap();
    let count = store.len().unwrap();
    assert!(u64::from(COUNT) / 2 < count && count < u64::from(COUNT));
    store.close().unwrap();
    let store = place.open(&powerful());
    assert_eq!(store.len().unwrap(), count);
    assert!(store.verify(|_| {}).unwrap().damage.is_empty());
}

/// More keys than a segment holds: splits copied some of them before they were durable.
#[test]
fn split_copies_are_not_taken_as_durable() {
    let place = Place::new();
    let store = place.open(&powerful());
    let keys = || (0..2_000u32).map(u32::to_be_bytes);
    let (put, _) = store.deferred(|store| keys().try_for_each(|key| store.put(key, "v")));
    put.unwrap();
    assert!(store.stats().figure("split_count").unwrap() > 0.0);
    for key in keys() {
        let (found, ticket) = store.deferred(|store| store.get(key));
        assert!(found.unwrap().is_some() && !store.is_durable(ticket).unwrap(), "{key:?}");
    }
}

#[test]
fn waker_is_called_when_ticket_is_durable() {
    let place = Place::new();
    let store = place.open(&powerful());
    let (sender, woken) = mpsc::channel();
    let waker = store.waker(move || sender.send(()).unwrap_or(()));
    for i in 0..20u8 {
        let (put, ticket) = store.deferred(|store| store.put([i], [i]));
        put.unwrap();
        if !waker.request(ticket).unwrap() {
            while !store.is_durable(ticket).unwrap() {
                woken.recv().unwrap();
            }
        }
        assert!(waker.request(ticket).unwrap());
    }
}

#[test]
fn several_loops_share_syncs() {
    let place = Place::new();
    let store = place.open(&powerful());
    thread::scope(|scope| {
        for name in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                let (sender, woken) = mpsc::channel();
                let waker = store.waker(move || sender.send(()).unwrap_or(()));
                for i in 0..50u8 {
                    let (put, ticket) = store.deferred(|store| store.put([name, i % 7], [i]));
                    put.unwrap();
                    let mut is_durable = waker.request(ticket).unwrap();
                    while !is_durable {
                        woken.recv().unwrap();
                        is_durable = store.is_durable(ticket).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn single_write_may_choose_level() {
    for options in [powerful(), buffered()] {
        let place = Place::new();
        let store = place.open(&options);
        let (written, ticket) = store.deferred(|store| {
            store.put("early", "1").unwrap();
            store.with_durability(Durability::Power).and_then(|store| store.put("key", "value"))
        });
        written.unwrap();
        assert!(!store.is_durable(ticket).unwrap(), "within a deferral it is not waited for");
        store.with_durability(Durability::Power).and_then(|store| store.put("later", "2")).unwrap();
        assert!(store.is_durable(ticket).unwrap(), "the log is synced up to the later write");
    }
    let place = Place::new();
    let store = place.open(&powerful());
    store.with_durability(Durability::Process).and_then(|store| store.put("key", "value")).unwrap();
    let (found, ticket) = store.deferred(|store| store.get("key"));
    assert!(found.unwrap().is_some());
    assert!(!store.is_durable(ticket).unwrap(), "a reader at 'power' does not rely on less");
    let found = store.with_durability(Durability::Process).and_then(|store| store.get("key")).unwrap();
    assert!(found.is_some() && !store.is_durable(ticket).unwrap(), "a reader at 'process' does");
}

#[test]
fn more_than_the_medium_gives_is_refused() {
    let Ok(home) = tempfile::tempdir_in("/dev/shm") else { return };
    let store = Store::open(home.path().join("store")).unwrap();
    let error = store.with_durability(Durability::Buffered).and_then(|store| store.put("key", "value")).unwrap_err();
    let Error::Durability { wanted: Durability::Buffered, given: Durability::Process, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        error.to_string(),
        "durability 'buffered' is not available: the store's medium, tmpfs, gives 'process'; request less, or put the store on a disk"
    );
    assert_eq!(store.get("key").unwrap(), None);
    store.with_durability(Durability::Process).and_then(|store| store.put("key", "value")).unwrap();
    let (put, ticket) = store.deferred(|store| store.put("key", "value"));
    put.unwrap();
    assert!(store.is_durable(ticket).unwrap());
}
