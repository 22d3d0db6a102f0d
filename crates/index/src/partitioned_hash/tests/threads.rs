//! Threads at once, for Miri and for the processor: no key is lost, and no pointer is invalid.
//!
//! Miri finds few races here. It has no barrier that reaches other threads, so every pin is a fence, and Miri
//! orders more by a fence than processors do. Loom checks the orders.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::plain::Plain;
use super::rig::{Key, Rig, key, mixed};

/// The number of keys per writer. The rounds reuse the space of their items several times.
const KEY_COUNT: u64 = if cfg!(miri) { 8 } else { 200 };
const ROUND_COUNT: u64 = if cfg!(miri) { 6 } else { 500 };
const SPLIT_COUNT: u64 = if cfg!(miri) { 2 } else { 5 };
const WRITER_COUNT: u64 = 2;

fn keys(writer: u64) -> impl Iterator<Item = Key> {
    (0..KEY_COUNT).map(move |i| i * WRITER_COUNT + writer).map(|number| key(mixed(number), number))
}

/// Puts, replaces and removes; the space of a removed item is soon reused. In the end every key holds the last
/// round.
fn write(rig: &Rig<Plain>, writer: u64) {
    for round in 0..=ROUND_COUNT {
        for (key, removes) in keys(writer).zip([false, true].into_iter().cycle()) {
            let before = (round > 0).then(|| round - 1);
            assert_eq!(rig.put(key, round), before.filter(|_| !removes));
            if removes && round < ROUND_COUNT {
                assert_eq!(rig.remove(key), Some(round));
            }
        }
        rig.cx().collect();
    }
}

/// The value that a reader sees under a key never gets older.
fn read(rig: &Rig<Plain>, stop: &AtomicBool) {
    let mut newest = vec![0; (KEY_COUNT * WRITER_COUNT) as usize];
    while !stop.load(Ordering::Relaxed) {
        for key in (0..WRITER_COUNT).flat_map(keys) {
            let newest = &mut newest[key.number as usize];
            let found = rig.get(key).unwrap_or(*newest);
            assert!(found >= *newest, "{key:?}: {found} after {newest}");
            *newest = found;
        }
    }
}

#[test]
fn readers_writers_and_splits_at_once() {
    let (rig, stop) = (Rig::format(Plain::new(), 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers = [0, 1].map(|writer| {
            scope.spawn({
                let rig = &rig;
                move || write(rig, writer)
            })
        });
        scope.spawn(|| read(&rig, &stop));
        (0..SPLIT_COUNT).for_each(|number| rig.split(mixed(number)));
        let ended = writers.map(|writer| writer.join());
        stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|writer| writer.unwrap());
    });
    for key in (0..WRITER_COUNT).flat_map(keys) {
        assert_eq!(rig.get(key), Some(ROUND_COUNT));
    }
    assert_eq!((rig.index.len(), rig.damage()), (KEY_COUNT * WRITER_COUNT, vec![]));
}
