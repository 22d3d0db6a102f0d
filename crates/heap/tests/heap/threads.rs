//! Many concurrent threads: no place has two owners, and in the end everything is free.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use heap::layout::UNIT_BYTES;
use heap::{EngineNumber, Heap, Place};

use crate::memory::{Host, Memory};

const THREAD_COUNT: usize = 4;
const STEP_COUNT: usize = 60_000;
/// Regions of these tests stay below this; a claim is a byte for each grain of 16.
const REGION_BYTES_MAX: usize = 256 << 20;

/// The owner of each place, as the threads see it.
struct Claims(Vec<AtomicU8>);

impl Claims {
    fn new() -> Claims {
        Claims((0..REGION_BYTES_MAX / 16).map(|_| AtomicU8::new(0)).collect())
    }

    fn change(&self, place: Place, capacity_bytes: u64, from: u8, to: u8) {
        let first = place.offset.0 as usize / 16;
        for grain in [first, first + capacity_bytes as usize / 16 - 1] {
            assert_eq!(self.0[grain].swap(to, Ordering::Relaxed), from, "{place:?} has two owners");
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Places of one grain start and end in the same grain, which a claim could not distinguish from two owners.
fn len_bytes(random: &mut Random) -> u64 {
    match random.below(400) {
        0 => 300_000,
        1..10 => 40_000 + random.below(3) as u64 * 30_000,
        n => 40 + (n as u64 % 5) * 90,
    }
}

/// All free space is one run, which is repeatedly absent while the file system allocates its space. Half of it is
/// free anyway.
#[test]
fn missing_runs_are_awaited() {
    let (memory, heap) = Memory::formatted();
    let whole = heap.reserve_extent(&memory, 64 << 20).unwrap().publish();
    memory.set_limit_bytes(heap.stats().region_bytes);
    let above_bytes = heap.stats().region_bytes - heap.stats().mark_bytes;
    let _above = (above_bytes > 2 * UNIT_BYTES)
        .then(|| heap.reserve_extent(&memory, above_bytes - UNIT_BYTES).unwrap().publish());
    heap.free(&memory, whole);
    thread::scope(|scope| {
        let cycles = scope.spawn(|| {
            for _ in 0..500 {
                let small = heap.reserve_extent(&memory, 1 << 10).unwrap().publish();
                heap.free(&memory, small);
                while heap.discard_free_run(&memory, 0).is_some() {}
            }
        });
        while !cycles.is_finished() {
            drop(heap.reserve_extent(&memory, 30 << 20).expect("half of the region is free"));
        }
    });
}

/// Reserves and frees at random, holding at most 500 places. Returns the places held at the end.
fn churn(memory: &Memory, heap: &Heap<Host>, claims: &Claims, lane: usize) -> Vec<Place> {
    let mut random = Random(lane as u64);
    let mut held = vec![];
    for _ in 0..STEP_COUNT {
        if held.len() < 500 && random.below(2) == 0 {
            let reservation = heap.reserve(memory, len_bytes(&mut random), lane).unwrap();
            if random.below(20) > 0 {
                let place = reservation.publish();
                claims.change(place, heap.table().check_place(place).unwrap(), 0, 1);
                held.push(place);
            }
        } else if !held.is_empty() {
            let place = held.swap_remove(random.below(held.len()));
            claims.change(place, heap.table().check_place(place).unwrap(), 1, 0);
            heap.free(memory, place);
        }
    }
    held
}

fn churn_all(memory: &Memory, heap: &Heap<Host>, claims: &Claims) -> Vec<Place> {
    thread::scope(|scope| {
        let start = |thread| scope.spawn(move || churn(memory, heap, claims, thread / 2));
        let threads: Vec<_> = (0..THREAD_COUNT).map(start).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_sharing_lanes_get_distinct_places() {
    let (memory, heap) = Memory::formatted();
    for place in churn_all(&memory, &heap, &Claims::new()) {
        heap.free(&memory, place);
    }
    assert_eq!(heap.stats().live_bytes, 0);
}

#[test]
fn places_freed_by_another_thread_come_back() {
    let (memory, heap) = Memory::formatted();
    let claims = Claims::new();
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Place>(1_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            for place in receiver {
                claims.change(place, heap.table().check_place(place).unwrap(), 1, 0);
                heap.free(&memory, place);
            }
        });
        let mut random = Random(1);
        for _ in 0..STEP_COUNT * 4 {
            let place = heap.reserve(&memory, len_bytes(&mut random), 0).unwrap().publish();
            claims.change(place, heap.table().check_place(place).unwrap(), 0, 1);
            sender.send(place).unwrap();
        }
        drop(sender);
    });
    assert_eq!(heap.stats().live_bytes, 0);
    assert!(heap.stats().region_bytes < 128 << 20, "{:?}", heap.stats());
}

/// While threads churn, one thread marks and then frees old places, and another ends the sweep at any moment after
/// the marks.
#[test]
fn frees_at_sweep_end_are_counted_once() {
    let (memory, heap) = Memory::formatted();
    let claims = Claims::new();
    let old: Vec<Place> = (0..40_000)
        .map(|i| heap.reserve(&memory, [40, 400, 40_000][i % if i < 900 { 3 } else { 2 }], 0).unwrap().publish())
        .collect();
    drop(heap);
    let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
    old.iter().for_each(|place| assert_eq!(heap.sweep().mark_reached(*place), Ok(true)));
    let left = thread::scope(|scope| {
        scope.spawn(|| old.iter().for_each(|place| heap.free(&memory, *place)));
        scope.spawn(|| heap.sweep().finish(&memory));
        churn_all(&memory, &heap, &claims)
    });
    for place in left {
        heap.free(&memory, place);
    }
    assert_eq!(heap.stats().live_bytes, 0);
}

/// Chunks of seven slots: the sweep passes thousands of them while two threads free a slot in each, in the same
/// order.
#[test]
fn free_during_chunk_sweep_is_not_lost() {
    const ROUND_COUNT: usize = 5;
    for _ in 0..ROUND_COUNT {
        let (memory, heap) = Memory::formatted();
        let old: Vec<Place> = (0..14_000).map(|_| heap.reserve(&memory, 32_768, 0).unwrap().publish()).collect();
        drop(heap);
        let heap = Heap::open(&memory, EngineNumber::HIKV, Host::default()).unwrap();
        old.iter().for_each(|place| assert_eq!(heap.sweep().mark_reached(*place), Ok(true)));
        let start = Barrier::new(3);
        let free_seventh = |first: usize| {
            start.wait();
            old[first..].iter().step_by(7).for_each(|place| heap.free(&memory, *place));
        };
        thread::scope(|scope| {
            scope.spawn(|| free_seventh(0));
            scope.spawn(|| free_seventh(1));
            start.wait();
            heap.sweep().finish(&memory);
        });
        (2..7).for_each(|first| old[first..].iter().step_by(7).for_each(|place| heap.free(&memory, *place)));
        assert_eq!(heap.stats().live_bytes, 0);
    }
}
