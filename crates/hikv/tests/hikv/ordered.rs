//! Ranges through the library, compared with a sorted map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::thread;

use hikv::{Durability, Error, Options, Store};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => format!("user{number:08}").into_bytes(),
        1 => number.to_be_bytes().to_vec(),
        _ => format!("https://example.org/{}/{number}", number % 7).into_bytes(),
    }
}

/// Returns an ordered store with some thousand short and long values. No put waits for the disk.
fn filled(options: &Options, dir: &tempfile::TempDir) -> (Store, Contents) {
    let store = options.clone().durability(Durability::Buffered).open(dir.path()).unwrap();
    let mut contents = Contents::new();
    for number in 0..3_000u64 {
        let (key, value) = (key(number), vec![number as u8; if number % 100 == 7 { 40_000 } else { 20 }]);
        store.put(&key, &value).unwrap();
        contents.insert(key, value);
    }
    for number in (0..3_000).step_by(5) {
        assert!(store.delete(key(number)).unwrap());
        contents.remove(&key(number));
    }
    (store, contents)
}

fn bounds() -> Vec<Bounds> {
    let ends = [Vec::new(), vec![0, 0], key(300), key(301), key(302), b"user".to_vec(), vec![255; 9]];
    let bounds = |key: &Vec<u8>| [Bound::Included(key.clone()), Bound::Excluded(key.clone()), Bound::Unbounded];
    let all: Vec<_> = ends.iter().flat_map(bounds).collect();
    all.iter().flat_map(|low| all.iter().map(move |high| (low.clone(), high.clone()))).collect()
}

/// Returns the range of a map, which refuses empty ranges.
fn expected(contents: &Contents, (low, high): &Bounds) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_within = |key: &Vec<u8>| {
        let above = match low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        };
        above
            && match high {
                Bound::Included(high) => key <= high,
                Bound::Excluded(high) => key < high,
                Bound::Unbounded => true,
            }
    };
    contents.iter().filter(|(key, _)| is_within(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[test]
fn ranges_are_those_of_a_sorted_map() {
    for background in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (store, contents) = filled(&Options::new().background(background), &dir);
        let ordered = store.ordered().unwrap();
        for range in bounds() {
            let expected = expected(&contents, &range);
            let items: Vec<_> = ordered.range(range.clone()).unwrap().map(Result::unwrap).collect();
            assert!(items == expected, "{range:?}");
            let items: Vec<_> = ordered.range(range.clone()).unwrap().rev().map(Result::unwrap).collect();
            assert!(items.iter().rev().eq(&expected), "{range:?}, reversed");
            assert_eq!(ordered.count(range).unwrap(), expected.len() as u64);
        }
    }
}

#[test]
fn both_ends_of_a_range_meet() {
    let dir = tempfile::tempdir().unwrap();
    let (store, contents) = filled(&Options::new(), &dir);
    for stride in 1..9 {
        let mut range = store.ordered().unwrap().iter().unwrap();
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for turn in 0.. {
            let item = if turn % stride == 0 { range.next_back() } else { range.next() };
            let Some(item) = item else { break };
            if turn % stride == 0 { high.push(item.unwrap()) } else { low.push(item.unwrap()) }
        }
        assert!(range.next().is_none() && range.next_back().is_none());
        assert!(low.into_iter().chain(high.into_iter().rev()).eq(contents.clone()));
    }
}

#[test]
fn the_nearest_keys() {
    let dir = tempfile::tempdir().unwrap();
    let (store, contents) = filled(&Options::new(), &dir);
    let ordered = store.ordered().unwrap();
    assert_eq!(ordered.first().unwrap(), contents.clone().into_iter().next());
    assert_eq!(ordered.last().unwrap(), contents.clone().into_iter().next_back());
    for probe in (0..3_000).map(key).chain([vec![], vec![255; 3]]) {
        let floor = contents.range(..=probe.clone()).next_back().map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(ordered.floor(&probe).unwrap(), floor);
        let ceiling = contents.range(probe.clone()..).next().map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(ordered.ceiling(&probe).unwrap(), ceiling);
    }
}

#[test]
fn prefixes_and_deleted_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut contents) = filled(&Options::new(), &dir);
    let ordered = store.ordered().unwrap();
    for prefix in ["user", "user0000", "https://example.org/3/", "", "nobody"] {
        let expected = contents.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes()));
        let items: Vec<_> = ordered.prefix(prefix).unwrap().map(Result::unwrap).collect();
        assert!(items.iter().map(|(key, value)| (key, value)).eq(expected), "{prefix}");
    }
    let gone = ordered.delete_range("https://".."user00001").unwrap();
    let before = contents.len();
    contents.retain(|key, _| key.as_slice() < &b"https://"[..] || key.as_slice() >= &b"user00001"[..]);
    assert_eq!(gone, (before - contents.len()) as u64);
    assert!(ordered.iter().unwrap().map(Result::unwrap).eq(contents));
}

#[test]
fn store_without_order_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = Options::new().ordered(false).open(dir.path()).unwrap();
    assert!(matches!(store.ordered(), Err(Error::NoOrder)));
    assert_eq!(store.stats().order, "none");
}

#[test]
fn order_is_built_on_request_with_progress() {
    let dir = tempfile::tempdir().unwrap();
    let (store, contents) = filled(&Options::new().background(false), &dir);
    assert_eq!(store.stats().order, "off");
    let ordered = store.ordered().unwrap();
    let early = ordered.clone().fail_if_not_ready();
    assert!(!ordered.is_ready().unwrap() && matches!(early.first(), Err(Error::NotOrderedYet { .. })));
    let mut seen = Vec::new();
    ordered.wait_until_ready(|progress| seen.push(progress.done)).unwrap();
    assert!(!seen.is_empty() && seen.is_sorted());
    let stats = store.stats();
    assert_eq!((stats.order, stats.order_done), ("ready", 2 * contents.len() as u64));
    assert!(early.first().unwrap().is_some());
    drop((ordered, early));
    store.close().unwrap();
}

/// Reading works for stores opened read-only. Without background threads, no other thread has built the order the
/// first time, or applied the later puts the second time.
#[test]
fn snapshot_range_has_all_earlier_puts() {
    let dir = tempfile::tempdir().unwrap();
    let store = Options::new().background(false).open(dir.path()).unwrap();
    for round in 0..2u8 {
        (0..100u8).for_each(|number| store.put([round, number], "value").unwrap());
        let snapshot = store.snapshot().unwrap();
        let keys: Vec<_> = snapshot.range::<&[u8]>(..).unwrap().map(|item| item.unwrap().0).collect();
        let wanted = (0..=round).flat_map(|round| (0..100).map(move |number| vec![round, number]));
        assert!(keys.into_iter().eq(wanted), "round {round}");
    }
}

#[test]
fn read_only_store_has_order() {
    let dir = tempfile::tempdir().unwrap();
    let (store, contents) = filled(&Options::new(), &dir);
    drop(store);
    let store = Store::open_read_only(dir.path()).unwrap();
    assert!(store.ordered().unwrap().iter().unwrap().map(Result::unwrap).eq(contents));
}

/// Writers insert, replace and delete keys around permanent ones; scanners see each permanent key once, in order.
#[test]
fn concurrent_scans_are_sorted_and_complete() {
    let dir = tempfile::tempdir().unwrap();
    let store = Options::new().durability(Durability::Buffered).open(dir.path()).unwrap();
    let stays = |number: u64| number.is_multiple_of(4);
    (0..20_000).filter(|&number| stays(number)).for_each(|number| store.put(number.to_be_bytes(), b"stays").unwrap());
    let ordered = store.ordered().unwrap();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for turn in 0..60_000u64 {
                        let number = (turn * 7919 + writer) % 20_000;
                        match (stays(number), turn % 3) {
                            (true, _) => store.put(number.to_be_bytes(), turn.to_le_bytes()).unwrap(),
                            (false, 0) => drop(store.delete(number.to_be_bytes()).unwrap()),
                            (false, _) => store.put(number.to_be_bytes(), b"goes").unwrap(),
                        }
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let (mut last, mut staying) = (None, 0);
            let each = |key: &[u8], _: &[u8]| {
                let number = u64::from_be_bytes(key.try_into().unwrap());
                assert!(last < Some(number), "{last:?} before {number}");
                (last, staying) = (Some(number), staying + u64::from(stays(number)));
            };
            ordered.scan([], each).unwrap();
            assert_eq!(staying, 5_000);
        }
    });
    assert_eq!(ordered.count::<&[u8]>(..).unwrap(), store.len().unwrap());
    assert!(store.verify(|_| {}).unwrap().damage.is_empty());
}
