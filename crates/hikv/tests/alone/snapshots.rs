//! Snapshots through the library: their contents under later writes, and the space that they keep.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use hikv::{Clock, Durability, Error, Options, PutOptions, Snapshot, Store, Ttl};
use tempfile::TempDir;

use crate::alone;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// No put waits for the disk.
fn opened(options: &Options) -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = options.clone().durability(Durability::Buffered).open(dir.path()).unwrap();
    (dir, store)
}

/// Applies random puts and deletes of a few keys to the store and to the map.
fn change(store: &Store, contents: &mut Contents, rng: &mut fastrand::Rng, count: usize) {
    for _ in 0..count {
        let key = format!("key {}", rng.u32(..3_000)).into_bytes();
        if rng.u8(..3) == 0 {
            assert_eq!(store.delete(&key).unwrap(), contents.remove(&key).is_some());
        } else {
            let value = vec![rng.u8(..); rng.usize(..200)];
            store.put(&key, &value).unwrap();
            contents.insert(key, value);
        }
    }
}

fn listed(snapshot: &Snapshot) -> Contents {
    let mut listed = Contents::new();
    let each = |key: &[u8], value: &[u8]| {
        assert_eq!(listed.insert(key.to_vec(), value.to_vec()), None, "shown twice");
    };
    snapshot.for_each(each).unwrap();
    listed
}

fn assert_shows(snapshot: &Snapshot, contents: &Contents) {
    assert_eq!(listed(snapshot), *contents);
    for number in 0..3_000 {
        let key = format!("key {number}").into_bytes();
        assert_eq!(snapshot.get(&key).unwrap().as_deref(), contents.get(&key).map(Vec::as_slice));
        assert_eq!(snapshot.contains(&key).unwrap(), contents.contains_key(&key));
    }
}

fn assert_shows_in_order(snapshot: &Snapshot, contents: &Contents) {
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    let all: Vec<_> = snapshot.range::<&[u8]>(..).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(all.iter().cloned().eq(contents.iter().map(owned)), "in order");
    let back: Vec<_> = snapshot.range::<&[u8]>(..).unwrap().rev().collect::<Result<_, _>>().unwrap();
    assert!(back.iter().cloned().eq(contents.iter().rev().map(owned)), "in order, from the end");
    let some = snapshot.prefix("key 2").unwrap().map(|item| item.unwrap().0);
    assert!(some.eq(contents.keys().filter(|key| key.starts_with(b"key 2")).cloned()), "a prefix");
    let (low, high) = (b"key 15".to_vec(), b"key 21".to_vec());
    let ends = (Bound::Excluded(low.clone()), Bound::Included(high.clone()));
    let within = snapshot.range(ends.clone()).unwrap().map(Result::unwrap);
    assert!(within.eq(contents.range(ends).map(owned)), "a range");
}

/// Takes several snapshots at different times, and drops them in another order.
fn stay_as_they_were(options: &Options, is_ordered: bool) {
    let (_dir, store) = opened(options);
    let (mut rng, mut contents) = (fastrand::Rng::with_seed(7), Contents::new());
    let mut taken = Vec::new();
    for _ in 0..4 {
        change(&store, &mut contents, &mut rng, 3_000);
        taken.push((store.snapshot().unwrap(), contents.clone()));
    }
    change(&store, &mut contents, &mut rng, 5_000);
    assert_eq!(store.stats().snapshot_count, 4);
    assert!(store.stats().kept_count > 1_000);
    while !taken.is_empty() {
        for (snapshot, contents) in &taken {
            assert_shows(snapshot, contents);
            if is_ordered {
                assert_shows_in_order(snapshot, contents);
            }
        }
        taken.remove(taken.len() / 2);
        change(&store, &mut contents, &mut rng, 1_000);
    }
    let stats = store.stats();
    assert_eq!((stats.snapshot_count, stats.kept_count, stats.kept_bytes), (0, 0, 0));
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

#[test]
fn snapshots_stay_as_they_were() {
    let _turn = alone();
    stay_as_they_were(&Options::new().ordered(false).tuning(|tuning| tuning.partition_count(1)), false);
    stay_as_they_were(&Options::new().ordered(false), false);
}

#[test]
fn snapshots_stay_as_they_were_in_order() {
    let _turn = alone();
    stay_as_they_were(&Options::new(), true);
    stay_as_they_were(&Options::new().background(false), true);
}

/// Every key is deleted: pages of the ordered index are empty, and cover more kept keys than one page visits.
#[test]
fn wholly_deleted_keys_are_in_snapshot() {
    let _turn = alone();
    let (_dir, store) = opened(&Options::new());
    store.ordered().unwrap();
    let (mut rng, mut contents) = (fastrand::Rng::with_seed(8), Contents::new());
    change(&store, &mut contents, &mut rng, 6_000);
    let snapshot = store.snapshot().unwrap();
    contents.keys().for_each(|key| assert!(store.delete(key).unwrap()));
    assert_eq!(store.ordered().unwrap().count::<&[u8]>(..).unwrap(), 0);
    assert_shows(&snapshot, &contents);
    assert_shows_in_order(&snapshot, &contents);
}

/// Items kept by several snapshots are freed with the last of them, and their space is reused.
#[test]
fn kept_versions_are_freed() {
    let _turn = alone();
    const ROUND_COUNT: u8 = 50;
    for options in [Options::new().ordered(false), Options::new()] {
        let (_dir, store) = opened(&options);
        if let Ok(ordered) = store.ordered() {
            ordered.wait_until_ready(|_| {}).unwrap();
        }
        let put_all = |fill: u8| (0..200u8).for_each(|key| store.put([key], vec![fill; 4_000]).unwrap());
        put_all(0);
        for round in 1..ROUND_COUNT {
            let (first, second) = (store.snapshot().unwrap(), store.snapshot().unwrap());
            put_all(round);
            let clone = second.clone();
            drop((first, second));
            assert_eq!(store.stats().kept_count, 200);
            assert_eq!(store.stats().kept_bytes, 200 * (16 + 1 + 4_000));
            assert_eq!(clone.get([7]).unwrap(), Some(vec![round - 1; 4_000].into()));
            drop(clone);
            assert_eq!(store.stats().kept_count, 0);
        }
        let (used_bytes, round_bytes) = (store.stats().used_bytes, 200 * 4_000);
        assert!(used_bytes < u64::from(ROUND_COUNT) * round_bytes / 2, "{used_bytes} bytes are used");
    }
}

#[test]
fn value_read_during_snapshot_is_excluded() {
    let _turn = alone();
    struct Source<'a>(&'a Store, Option<Snapshot>);
    impl std::io::Read for Source<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.1 = Some(self.0.snapshot().map_err(std::io::Error::other)?);
            into.fill(2);
            Ok(into.len())
        }
    }
    let (_dir, store) = opened(&Options::new());
    store.put("film", [1]).unwrap();
    let mut source = Source(&store, None);
    store.put_from("film", 100, &mut source).unwrap();
    assert_eq!(source.1.unwrap().get("film").unwrap(), Some(vec![1].into()));
    assert_eq!(store.get("film").unwrap(), Some(vec![2; 100].into()));
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

#[test]
fn impossible_operations_are_refused() {
    let _turn = alone();
    let (_dir, store) = opened(&Options::new());
    store.put("a", "1").unwrap();
    let inside = store.in_place().get("a", |_| store.snapshot().map(drop)).unwrap();
    assert!(matches!(inside, Some(Err(Error::InsideCallback))));
    let snapshot = store.snapshot().unwrap();
    assert!(matches!(store.clear(), Err(Error::SnapshotLive { count: 1 })));
    assert_eq!(snapshot.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    drop(snapshot);
    store.clear().unwrap();
    assert!(store.is_empty().unwrap());
}

/// Version stamps continue after a restart: a later snapshot includes all earlier puts.
#[test]
fn epochs_outlive_the_process() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    for round in 0..4u8 {
        let store = Store::open(dir.path()).unwrap();
        store.put([round], "before").unwrap();
        let snapshot = store.snapshot().unwrap();
        store.put([round], "after").unwrap();
        store.put("other", [round]).unwrap();
        assert_eq!(listed(&snapshot).len(), usize::from(round) + 1 + usize::from(round > 0));
        assert_eq!(snapshot.get([round]).unwrap().as_deref(), Some(&b"before"[..]));
    }
    let (reader, other) = (Store::open_read_only(dir.path()).unwrap(), Store::open_read_only(dir.path()).unwrap());
    let snapshots = [reader.snapshot().unwrap(), reader.snapshot().unwrap(), other.snapshot().unwrap()];
    for snapshot in snapshots {
        assert_eq!(snapshot.get([3]).unwrap().as_deref(), Some(&b"after"[..]));
        assert_eq!(listed(&snapshot).len(), 5);
    }
}

/// A snapshot omits keys that had expired. It includes keys that expire later, and so does a backup, with their
/// expiry.
#[test]
fn snapshot_stays_while_keys_expire() {
    let _turn = alone();
    let clock = Clock::manual(1_000_000);
    let (dir, store) = opened(&Options::new().clock(clock.clone()));
    let ms = Duration::from_millis;
    store.put_with("early", "1", PutOptions::new().ttl(ms(10))).unwrap();
    store.put_with("late", "2", PutOptions::new().ttl(ms(1_000))).unwrap();
    store.put("stays", "3").unwrap();
    clock.advance(ms(10));
    let snapshot = store.snapshot().unwrap();
    let out = dir.path().join("out");
    assert_eq!(store.backup(&out, |_| {}).unwrap().items, 2);
    clock.advance(ms(1_000));
    assert!(!store.contains("late").unwrap());
    store.put("early", "again").unwrap();
    let shown: Contents = [("late", "2"), ("stays", "3")].map(|(key, value)| (key.into(), value.into())).into();
    assert_eq!(listed(&snapshot), shown);
    assert!(snapshot.contains("late").unwrap() && !snapshot.contains("early").unwrap());
    assert_eq!(snapshot.range::<&str>(..).unwrap().count(), 2);
    let backup = Options::new().clock(Clock::manual(1_000_010)).read_only(true).open(&out).unwrap();
    assert_eq!(backup.ttl("late").unwrap(), Some(Ttl::Left(ms(990))));
    assert_eq!(backup.ttl("stays").unwrap(), Some(Ttl::Unlimited));
}
