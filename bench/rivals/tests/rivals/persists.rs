//! The fences of each operation, and the load at which a table is full.

use pmem::{Counted, Medium};
use pmem_sim::{Model, Sim};
use rivals::{Error, LevelHash, PathHash, Pfht, RewoPrinted, Table};

use crate::subject::key;

type OnSim = Counted<Sim>;

const SLOT_COUNT: u64 = 6120;

fn fences<T: Table<OnSim>>(table: &T, work: impl FnOnce(&T)) -> u64 {
    let count = |table: &T| table.medium().counts().unwrap().fence_count;
    let before = count(table);
    work(table);
    count(table) - before
}

/// Fills a table; returns it with the fences of every insert, and its load.
fn filled<T: Table<OnSim>>() -> (T, Vec<u64>, f64) {
    let table = T::format(Counted::new(Sim::new(0, Model::Line)), SLOT_COUNT).unwrap();
    let mut counts = Vec::new();
    for i in 0.. {
        let mut is_full = false;
        let count = fences(&table, |table| match table.insert(&key(i), b"a value") {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, Error::Full);
                is_full = true;
            }
        });
        if is_full {
            assert_eq!(count, 0, "a refused insert changes nothing");
            break;
        }
        counts.push(count);
    }
    let load = table.len() as f64 / table.slot_count() as f64;
    assert_eq!(table.len(), counts.len() as u64);
    (table, counts, load)
}

fn costs<T: Table<OnSim>>(insert: &[u64], update: &[u64], load_least: f64) {
    let (table, counts, load) = filled::<T>();
    assert!(load >= load_least, "{}: full at {load}", T::NAME);
    assert!(insert.iter().all(|count| counts.contains(count)) && counts.iter().all(|count| insert.contains(count)));
    let keys = 0..counts.len() as u32;
    assert!(keys.clone().all(|i| table.get(&key(i), |value| assert_eq!(value, b"a value"))));
    assert!(!table.get(&key(9999), |_| {}));
    // Half of the keys are removed: some buckets have space then, and others have none.
    for i in keys.clone().filter(|i| i % 2 == 0) {
        assert_eq!(fences(&table, |table| assert!(table.delete(&key(i)).unwrap())), 1);
        assert!(!table.get(&key(i), |_| {}));
    }
    let updates = keys.filter(|i| i % 2 == 1);
    let seen: Vec<_> =
        updates.map(|i| fences(&table, |table| assert!(table.update(&key(i), b"another").unwrap()))).collect();
    assert!(update.iter().all(|count| seen.contains(count)) && seen.iter().all(|count| update.contains(count)));
    assert!(table.get(&key(1), |value| assert_eq!(value, b"another")));
    assert_eq!(fences(&table, |table| assert!(!table.update(&key(0), b"none").unwrap())), 0);
}

#[test]
fn pfht_logs_updates_and_persists_moves() {
    costs::<Pfht<OnSim>>(&[2, 5], &[4], 0.9);
}

#[test]
fn path_hashing_logs_updates_and_moves_nothing() {
    costs::<PathHash<OnSim>>(&[2], &[4], 0.7);
}

#[test]
fn level_hashing_logs_only_full_buckets() {
    costs::<LevelHash<OnSim>>(&[2, 5], &[2, 4], 0.8);
}

#[test]
fn rewo_as_printed_logs_nothing() {
    costs::<RewoPrinted<OnSim>>(&[2, 5], &[2, 3], 0.9);
    costs::<RewoPrinted<OnSim, false>>(&[2, 5], &[2, 3], 0.9);
}

/// First-fit leaves 4, 21 and 49 % of the items in full buckets at loads of 0.4, 0.6 and 0.8, and pre-eviction hardly
/// any but at 0.8. Both hold the same items.
#[test]
fn pre_eviction_lowers_full_buckets() {
    let slot_count = 9_600;
    let tables = [(); 2].map(|()| {
        let table = RewoPrinted::<OnSim>::format(Counted::new(Sim::new(0, Model::Line)), slot_count);
        table.unwrap()
    });
    let mut next = 0;
    for (load_percent, crowded, relieved_max) in [(40, 0.04, 0.01), (60, 0.21, 0.02), (80, 0.49, 0.15)] {
        while u64::from(next) < slot_count * load_percent / 100 {
            tables.iter().for_each(|table| table.insert(&key(next), b"a value").unwrap());
            next += 1;
        }
        while tables[1].pre_evict().unwrap() > 0 {}
        let [plain, relieved] = [&tables[0], &tables[1]].map(RewoPrinted::crowded_share);
        assert!(plain > 0.01 && (plain - crowded).abs() < 0.05, "{load_percent} %: {plain}");
        assert!(relieved < relieved_max, "{load_percent} %: {relieved}");
    }
    assert!((0..next).all(|i| tables.iter().all(|table| table.get(&key(i), |value| assert_eq!(value, b"a value")))));
}

#[test]
fn value_too_large_for_slot_is_refused() {
    let table = Pfht::format(Sim::new(0, Model::Line), SLOT_COUNT).unwrap();
    assert_eq!(table.insert(b"short", b""), Err(Error::Length));
    assert_eq!(table.insert(&key(1), &[0; 16]), Err(Error::Length));
    assert!(matches!(Pfht::open(Sim::new(4096, Model::Line)), Err(Error::Unformatted)));
}
