//! Keys that expire while others write, and in a store that keeps its keys in order.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::hikv::Parameters;
use engine::{Clock, Direction, Early, Engine, HiKv, HostDram, Ordered, OrderedEngine, Progress, ScanCursor};
use pmem_sim::{Model, Sim};

const REGION_BYTES: u64 = 16 << 20;
const QUEUE_COUNT: usize = 2;
const SECOND: Duration = Duration::from_secs(1);

type Store = HiKv<Sim, HostDram, Ordered<HostDram>>;

fn store(clock: &Clock) -> Store {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 4, region_bytes: REGION_BYTES };
    let store = HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap();
    store.ordered(Ordered::new(QUEUE_COUNT, HostDram)).by_clock(clock.clone())
}

fn put_for(store: &Store, key: &[u8], time: Duration) {
    store.put_until(key, b"value", store.clock().after(time)).unwrap();
}

fn work(store: &Store) {
    while store.step().unwrap() == Progress::More {}
}

fn scanned(store: &Store) -> Vec<Vec<u8>> {
    store.catch_up(Early::Wait).unwrap();
    let (mut cursor, mut keys) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), Vec::new());
    let mut each = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    };
    while store.scan(&mut cursor, &mut each).unwrap() {}
    keys
}

fn count(store: &Store) -> u64 {
    let (mut cursor, mut total) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), 0);
    loop {
        let (count, has_more) = store.count(&mut cursor, Bound::Unbounded).unwrap();
        total += count;
        if !has_more {
            return total;
        }
    }
}

/// More keys expire at once than a queue of the order holds changes.
#[test]
fn a_burst_of_expiries_is_reaped_and_not_scanned_meanwhile() {
    const COUNT: u32 = 12_000;
    let clock = Clock::manual(0);
    let store = store(&clock);
    store.catch_up(Early::Wait).unwrap();
    for number in 0..COUNT {
        put_for(&store, &number.to_be_bytes(), if number % 100 == 0 { 9 * SECOND } else { SECOND });
    }
    assert_eq!((scanned(&store).len(), count(&store)), (COUNT as usize, COUNT.into()));
    clock.advance(SECOND);
    let staying: Vec<_> = (0..COUNT).step_by(100).map(|number| number.to_be_bytes().to_vec()).collect();
    assert_eq!((scanned(&store), count(&store)), (staying.clone(), staying.len() as u64));
    work(&store);
    // What a full queue kept the first round from is for the next one.
    clock.advance(SECOND);
    work(&store);
    assert_eq!(store.len().unwrap(), staying.len() as u64);
    assert_eq!(scanned(&store), staying);
}

/// Each thread lets keys of its own expire and puts them again, while others reap.
#[test]
fn what_was_put_again_is_there_whatever_the_reaper_does() {
    const THREAD_COUNT: u8 = 3;
    const ROUND_COUNT: u32 = 300;
    let clock = Clock::manual(0);
    let (store, is_over) = (store(&clock), AtomicBool::new(false));
    thread::scope(|scope| {
        let reaper = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                clock.advance(SECOND);
                work(&store);
            }
        });
        let writers: Vec<_> = (0..THREAD_COUNT)
            .map(|thread| {
                scope.spawn({
                    let store = &store;
                    move || {
                        for round in 0..ROUND_COUNT {
                            let keys: Vec<_> = (0..16).map(|number| [thread, number]).collect();
                            keys.iter().for_each(|key| put_for(store, key, SECOND));
                            keys.iter().for_each(|key| store.put(key, &round.to_le_bytes()).unwrap());
                            for key in &keys {
                                let mut value = None;
                                store.get(key, &mut |_, found| value = Some(found.to_vec())).unwrap();
                                assert_eq!(value.as_deref(), Some(&round.to_le_bytes()[..]), "{key:?}");
                            }
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Release);
        reaper.join().unwrap();
    });
    assert!(store.stats().reaped_count > 0, "nothing was reaped between two puts");
    assert_eq!(store.len().unwrap(), u64::from(THREAD_COUNT) * 16);
}
