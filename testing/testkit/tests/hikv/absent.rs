//! Snapshots of a store most of which is not in memory yet: each snapshot shows the contents when it was taken,
//! whatever is written afterwards.

use std::collections::BTreeMap;
use std::thread;

use engine::prelude::*;
use engine::{Cursor, Error, Moment};
use engine_hikv::HiKv;
use journal::{Acknowledger, Journaled};
use pmem_os::HostDram;
use pmem_sim::{Crashable, SimDisk, SimFile};
use testkit::small_journal;

use crate::lost::{KEY_COUNT, Store, filled, value};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn opened(disk: &SimDisk) -> (Store, Acknowledger<SimFile>) {
    let journal = Journaled::open(disk.files(), small_journal(), &|_| {}).unwrap();
    let acknowledger = journal.acknowledger();
    (HiKv::open(journal, HostDram).unwrap(), acknowledger)
}

fn absent_bytes(journal: &Acknowledger<SimFile>) -> u64 {
    let loaded = journal.figures().loaded;
    loaded.total_bytes - loaded.done_bytes
}

/// Returns the contents before any change.
fn first_contents() -> Contents {
    (0..KEY_COUNT).map(|key| (vec![key], value(key))).collect()
}

/// Replaces some keys' values, deletes some keys and adds one; returns the new contents.
fn change(store: &Store) -> Contents {
    let mut contents = first_contents();
    for key in (0..KEY_COUNT).step_by(3) {
        store.put(&[key], b"changed").unwrap();
        contents.insert(vec![key], b"changed".to_vec());
    }
    for key in (0..KEY_COUNT).step_by(5) {
        assert!(store.delete(&[key]).unwrap());
        contents.remove(&[key][..]);
    }
    store.put(b"new", b"new").unwrap();
    contents.insert(b"new".to_vec(), b"new".to_vec());
    contents
}

fn walked_at(store: &Store, at: Moment) -> Result<Contents, Error> {
    let (mut cursor, mut shown) = (Cursor::default(), Contents::new());
    while !cursor.is_done() {
        let mut each = |key: &[u8], value: &[u8], _| {
            assert_eq!(shown.insert(key.to_vec(), value.to_vec()), None, "a key is shown twice");
        };
        cursor = store.walk_at(at, cursor, &mut each, &mut Err)?;
    }
    Ok(shown)
}

fn found_at(store: &Store, at: Moment) -> Result<Contents, Error> {
    let mut shown = Contents::new();
    for key in first_contents().into_keys().chain([b"new".to_vec()]) {
        store.get_at(at, &key, &mut |_, _, value| _ = shown.insert(key.clone(), value.to_vec()))?;
    }
    Ok(shown)
}

#[test]
fn snapshot_shows_unread_values() {
    for is_closed in [false, true] {
        for show in [walked_at, found_at] {
            let (store, journal) = opened(&filled(is_closed));
            let at = store.take_snapshot().unwrap();
            assert!(absent_bytes(&journal) > u64::from(KEY_COUNT) * 900, "the items are not in memory");
            assert!(show(&store, at).unwrap() == first_contents());
        }
    }
}

#[test]
fn snapshot_shows_overwritten_values() {
    for is_closed in [false, true] {
        for show in [walked_at, found_at] {
            let (store, journal) = opened(&filled(is_closed));
            let at = store.take_snapshot().unwrap();
            let changed = change(&store);
            assert!(absent_bytes(&journal) > 0, "some items are not in memory");
            assert!(show(&store, at).unwrap() == first_contents());
            store.release_snapshot(at);
            let later = store.take_snapshot().unwrap();
            assert!(show(&store, later).unwrap() == changed);
        }
    }
}

/// Two writers change unread data, each its own keys, while a reader looks at the contents before.
#[test]
fn snapshot_shows_values_before_two_writers() {
    for is_closed in [false, true] {
        for show in [walked_at, found_at] {
            let (store, _) = opened(&filled(is_closed));
            let at = store.take_snapshot().unwrap();
            let second = |key: u8| (vec![0xFF, key], vec![key; 700]);
            let changed = thread::scope(|scope| {
                scope.spawn(|| (0..KEY_COUNT).map(second).for_each(|(key, value)| store.put(&key, &value).unwrap()));
                let shown = scope.spawn(|| show(&store, at).unwrap());
                let changed = change(&store);
                assert!(shown.join().unwrap() == first_contents());
                changed
            });
            assert!(show(&store, at).unwrap() == first_contents());
            store.release_snapshot(at);
            let later = store.take_snapshot().unwrap();
            let all: Contents = changed.into_iter().chain((0..KEY_COUNT).map(second)).collect();
            assert!(walked_at(&store, later).unwrap() == all);
        }
    }
}

#[test]
fn snapshot_without_log_is_caught() {
    let disk = filled(false).with_canary(journal::canary::LOADED_WITHOUT_REDO);
    let journal = Journaled::open(disk.files(), small_journal(), &|_| {}).unwrap();
    let shown = HiKv::open(journal, HostDram).map(|store: Store| {
        let at = store.take_snapshot().unwrap();
        walked_at(&store, at)
    });
    assert!(!matches!(shown, Ok(Ok(shown)) if shown == first_contents()), "the broken variant was not caught");
}
