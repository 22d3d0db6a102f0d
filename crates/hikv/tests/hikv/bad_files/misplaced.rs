//! Misdirected writes of a disk: parts of other lengths than a page keep old contents, two pages are stale, a page is
//! written to another page's place, or a page of another store appears. No key may return another key's value, in
//! gets, walks, ranges and conversions, and after further writes, which must be kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fastrand::Rng;
use hikv::{Durability, EngineKind, Error, Options, Store};

use super::aged::home;
use super::stale::{KEY_COUNT, is_of, key, regions_of, value};

const ALL_COUNT: usize = KEY_COUNT + KEY_COUNT / 4;
const PAGE: usize = 4096;
const ROUND_COUNT: usize = 12;
const ENGINES: [EngineKind; 4] = [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];

type Items = BTreeMap<Vec<u8>, Vec<u8>>;

/// A region before and after changes, and another store's region.
struct Regions {
    before: Vec<u8>,
    after: Vec<u8>,
    other: Vec<u8>,
}

impl Regions {
    /// Returns the start of a part that differs.
    fn changed(&self, len: usize, random: &mut Rng) -> usize {
        let part_count = self.after.len().min(self.before.len()) / len;
        let is_changed = |&at: &usize| self.before[at..at + len] != self.after[at..at + len];
        let changed: Vec<_> = (0..part_count).map(|part| part * len).filter(is_changed).collect();
        random.choice(changed).expect("much has changed")
    }
}

/// Reads everything and asserts that every result belongs to its key. Returns the items found, and the number of
/// errors.
fn read_all(store: &Store, what: &str) -> (Items, usize) {
    let (mut found, mut error_count) = (Items::new(), 0);
    for key in (0..ALL_COUNT).map(key) {
        match store.get(&key) {
            Ok(value) => found.extend(value.map(|value| (key, value.to_vec()))),
            Err(error) => {
                assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}");
                error_count += 1;
            }
        }
    }
    assert!(found.iter().all(|(key, value)| is_of(key, value)), "{what}: a key has another's value");
    let walked = store.for_each(|key, value| {
        assert!(is_of(key, value), "{what}: a walk gives a key another's value");
    });
    if let Ok(range) = store.ordered().and_then(|ordered| ordered.range::<&[u8]>(..)) {
        let mut items = range.map_while(Result::ok);
        assert!(items.all(|(key, value)| is_of(&key, &value)), "{what}: a range gives a key another's value");
    }
    (found, error_count + usize::from(walked.is_err()))
}

/// Returns true if reads of a read-only store report damage.
fn is_reported(dir: &Path, engine: EngineKind, what: &str) -> bool {
    let Ok(store) = Store::open_read_only(dir) else { return false };
    let (found, error_count) = read_all(&store, what);
    let is_checked = store.verify(|_| {}).is_ok_and(|report| !report.damage.is_empty());
    assert!(error_count == 0 || is_checked, "{what}: reads meet damage, and a deep check does not");
    drop(store);
    let (into, to) =
        (dir.with_extension("converted"), if engine == EngineKind::HiKv { EngineKind::Ink } else { EngineKind::HiKv });
    if hikv::convert(dir, &into, to, |_| {}).is_ok() {
        assert_eq!(read_all(&Store::open_read_only(&into).unwrap(), what), (found, 0), "{what}: converted");
    }
    error_count > 0
}

/// Asserts that acknowledged further writes exist or return an error, also after the store is opened again.
fn assert_writes_kept(dir: &Path, what: &str) {
    let open = || Options::new().background(false).durability(Durability::Process).open(dir);
    let Ok(store) = open() else { return };
    let mut acknowledged = BTreeMap::new();
    for i in (0..ALL_COUNT).filter(|i| i % 3 != 2) {
        let new = (i % 9 != 1).then(|| value(i, 7 + i % 2));
        let written = new.as_ref().map_or_else(|| store.delete(key(i)).map(drop), |new| store.put(key(i), new));
        acknowledged.extend(written.ok().map(|()| (key(i), new)));
    }
    let assert_kept = |store: &Store| {
        read_all(store, what);
        for (key, value) in &acknowledged {
            let is_kept = store.get(key).map_or(true, |found| found.as_deref() == value.as_deref());
            assert!(is_kept, "{what}: a write to {} is lost", String::from_utf8_lossy(key));
        }
    };
    assert_kept(&store);
    _ = store.close();
    open().iter().for_each(assert_kept);
}

/// Runs rounds of damage in all engines, on killed and on closed stores.
fn no_value_of_another_key(damage: impl Fn(&mut Vec<u8>, &Regions, &mut Rng) -> String) {
    let mut random = Rng::with_seed(41);
    for engine in ENGINES {
        let ([before, killed, closed], [_, other, _]) = (regions_of(engine, 0), regions_of(engine, 3));
        let mut reported_count = 0;
        for after in [killed, closed] {
            let regions = Regions { before: before.clone(), after, other: other.clone() };
            for _ in 0..ROUND_COUNT {
                let mut region = regions.after.clone();
                let what = format!("{engine}: {}", damage(&mut region, &regions, &mut random));
                let home = home();
                let dir = home.path().join("store");
                fs::create_dir(&dir).unwrap();
                fs::write(dir.join("store.hikv"), region).unwrap();
                reported_count += usize::from(is_reported(&dir, engine, &what));
                assert_writes_kept(&dir, &what);
            }
        }
        // PMEKV opens no store whose log does not match.
        assert!(reported_count > 0 || engine == EngineKind::Pmekv, "{engine}: nothing is met");
    }
}

#[test]
fn stale_parts_never_mix_values() {
    no_value_of_another_key(|region, regions, random| {
        let len = [512, 1024, 4 * PAGE, 16 * PAGE][random.usize(..4)];
        let at = regions.changed(len, random);
        region[at..at + len].copy_from_slice(&regions.before[at..at + len]);
        format!("{len} bytes at {at:#x}")
    });
}

#[test]
fn two_stale_pages_mix_no_values() {
    no_value_of_another_key(|region, regions, random| {
        let pages = [(); 2].map(|()| regions.changed(PAGE, random));
        pages.iter().for_each(|&at| region[at..at + PAGE].copy_from_slice(&regions.before[at..at + PAGE]));
        format!("pages {pages:#x?}")
    });
}

#[test]
fn page_at_anothers_place_mixes_no_values() {
    no_value_of_another_key(|region, regions, random| {
        let [to, from] = [(); 2].map(|()| regions.changed(PAGE, random));
        region.copy_within(from..from + PAGE, to);
        format!("page {from:#x} at {to:#x}")
    });
}

#[test]
fn page_of_another_store_mixes_no_values() {
    no_value_of_another_key(|region, regions, random| {
        let at = regions.changed(PAGE, random);
        region[at..at + PAGE].copy_from_slice(&regions.other[at..at + PAGE]);
        format!("another store's page {at:#x}")
    });
}
