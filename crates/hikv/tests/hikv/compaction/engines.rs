//! Every engine returns space: of deleted and cleared items in the background, of scattered items on request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hikv::{Durability, EngineKind, Options, Store};

use crate::compaction::{allocated_bytes, assert_sound, compact_until, place, wait_until};

fn engines() -> impl Iterator<Item = EngineKind> {
    EngineKind::ALL.iter().copied().filter(|kind| kind.name() != "toy")
}

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).durability(Durability::Process)
}

fn value(number: u64, len_bytes: usize) -> Vec<u8> {
    vec![number as u8; len_bytes]
}

fn fill(store: &Store, count: u64, len_bytes: usize) {
    (0..count).for_each(|number| store.put(number.to_be_bytes(), value(number, len_bytes)).unwrap());
}

fn assert_holds(store: &Store, count: u64, every: u64, len_bytes: usize) {
    for number in 0..count {
        let held = number.is_multiple_of(every).then(|| value(number, len_bytes));
        assert_eq!(
            store.get(number.to_be_bytes()).unwrap().map(Vec::from),
            held,
            "{} key {number}",
            store.engine_kind()
        );
    }
    assert_sound(store);
}

#[test]
fn emptied_store_takes_little_space() {
    for engine in engines() {
        let place = place();
        let store = options(engine).open(place.path()).unwrap();
        fill(&store, 40_000, 1_000);
        store.put("large", vec![7; 5 << 20]).unwrap();
        assert!(allocated_bytes(&store) > 40 << 20, "{engine}");
        (0..40_000u64).for_each(|number| assert!(store.delete(number.to_be_bytes()).unwrap()));
        store.delete("large").unwrap();
        wait_until(&format!("{engine} gives space back"), || allocated_bytes(&store) < 12 << 20);
        assert_sound(&store);
    }
}

/// Less garbage than slows writers, and no later write: nothing else would wake the background.
#[test]
fn idle_store_frees_last_deletes() {
    const COUNT: u64 = 40;
    let delete_each = |store: &Store| {
        (0..COUNT).for_each(|number| assert!(store.delete(number.to_be_bytes()).unwrap()));
    };
    for engine in engines() {
        for empty in [&delete_each as &dyn Fn(&Store), &|store| store.clear().unwrap()] {
            let place = place();
            let store = options(engine).open(place.path()).unwrap();
            fill(&store, COUNT, 1 << 20);
            wait_until(&format!("{engine} sleeps"), || store.stats().awake_worker_count == 0);
            assert!(allocated_bytes(&store) > 40 << 20, "{engine}");
            empty(&store);
            wait_until(&format!("{engine} gives space back"), || allocated_bytes(&store) < 12 << 20);
        }
    }
}

/// No write follows the `clear`: the background works without being woken.
#[test]
fn cleared_store_of_any_engine_takes_little() {
    for engine in engines() {
        let place = place();
        let store = options(engine).open(place.path()).unwrap();
        fill(&store, 500_000, 60);
        assert!(allocated_bytes(&store) > 40 << 20, "{engine}");
        store.clear().unwrap();
        wait_until(&format!("{engine} gives space back"), || allocated_bytes(&store) < 12 << 20);
        fill(&store, 1_000, 60);
        assert_holds(&store, 1_000, 1, 60);
    }
}

#[test]
fn scattered_items_of_any_engine_are_gathered() {
    for engine in engines() {
        let place = place();
        let store = options(engine).tuning(|tuning| tuning.compact_above(None)).open(place.path()).unwrap();
        fill(&store, 60_000, 1_000);
        (0..60_000u64).filter(|number| !number.is_multiple_of(20)).for_each(|number| {
            store.delete(number.to_be_bytes()).unwrap();
        });
        let mut moved_items = 0;
        wait_until(&format!("{engine} is compacted"), || {
            moved_items += store.compact(|_| {}).unwrap().moved_items;
            allocated_bytes(&store) < 16 << 20
        });
        assert!(moved_items > 1_000, "{engine}: {moved_items}");
        assert_holds(&store, 60_000, 20, 1_000);
        store.close().unwrap();
        assert_holds(&options(engine).open(place.path()).unwrap(), 60_000, 20, 1_000);
    }
}

/// The check of a hash index looks each key up after it has read its slot: an item that moves between would be damage.
#[test]
fn checks_pause_background_compaction() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash] {
        let place = place();
        let store = options(engine).background(false).open(place.path()).unwrap();
        fill(&store, 20_000, 1_000);
        (0..20_000u64).filter(|number| !number.is_multiple_of(20)).for_each(|number| {
            store.delete(number.to_be_bytes()).unwrap();
        });
        let moved_items = || store.stats().moved_count;
        let report = store.verify(|checked| {
            // The check has begun, and has not ended yet.
            if (1..checked.items_total).contains(&checked.items) {
                (0..100).for_each(|_| _ = store.background().step().unwrap());
                assert_eq!(moved_items(), 0, "{engine}");
            }
        });
        assert_eq!(report.unwrap().damage, []);
        wait_until(&format!("{engine} moves items"), || {
            store.background().step().unwrap();
            moved_items() > 0
        });
    }
}

/// Writers replace and delete items that are being moved: each key keeps its last value.
#[test]
fn compaction_of_any_engine_undoes_no_write() {
    const KEYS: u64 = 3_000;
    for engine in engines() {
        let place = place();
        let store = options(engine).tuning(|tuning| tuning.compact_above(None)).open(place.path()).unwrap();
        fill(&store, KEYS, 700);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2u64)
                .map(|thread| {
                    let store = &store;
                    scope.spawn(move || {
                        for round in 1..=12u64 {
                            for number in (thread..KEYS).step_by(2) {
                                let is_gone = (number + round).is_multiple_of(3);
                                match is_gone {
                                    true => _ = store.delete(number.to_be_bytes()).unwrap(),
                                    false => store.put(number.to_be_bytes(), value(number + round, 700)).unwrap(),
                                }
                            }
                        }
                    })
                })
                .collect();
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    assert!(store.compact(|_| {}).unwrap().damaged.is_empty());
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Release);
        });
        for number in 0..KEYS {
            let held = (!(number + 12).is_multiple_of(3)).then(|| value(number + 12, 700));
            assert_eq!(store.get(number.to_be_bytes()).unwrap().map(Vec::from), held, "{engine} key {number}");
        }
        compact_until(&store, || allocated_bytes(&store) < 16 << 20);
        assert_sound(&store);
    }
}
