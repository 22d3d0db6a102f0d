//! Tests of the earlier content of a log's space: bytes that look like a run of that lane and number, from an
//! earlier store on the DAX device or from a user who chose them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use heap::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, unit_start};
use heap::{EngineNumber, Heap, Parameters};
use pmem::{Bytes, Canary, Checksum, Offset, Persist};
use pmem_sim::{Model, Sim, SimDram};
use undo_log::{Lanes, canary, layout};

use crate::scene::LANE_COUNT;

/// Longer than a log of one unit.
const LONG_BYTES: u64 = 2 * layout::LOG_BYTES;
/// An unused word between the head's last line and the first chunk.
const WORD: Offset = Offset(40_000);

fn sim(canary: Option<Canary>) -> Sim {
    canary.into_iter().fold(Sim::new(4 << 20, Model::Line), Sim::with_canary)
}

fn format(sim: &Sim) -> (Heap<SimDram>, pmem::DramBox<Lanes, SimDram>) {
    let parameters =
        Parameters { uuid: [1; 16], hash_seed: 1, partition_count: LANE_COUNT as u32, region_bytes: 4 << 20 };
    let heap = Heap::format(sim, EngineNumber::INK, &parameters, SimDram).unwrap();
    let lanes = Lanes::format(sim, &heap, LANE_COUNT, SimDram).unwrap();
    heap.region().finish_format(sim).unwrap();
    (heap, lanes)
}

/// Writes, durably, bytes that would be a run of a lane's first number if they were in its log.
fn forge(sim: &Sim, at: Offset, lane: usize) {
    let ranges = [(WORD.0 | 1 << 48).to_le_bytes(), 7u64.to_le_bytes()].concat();
    let head = ((ranges.len() as u128) << 64 | (lane as u128) << 96).to_le_bytes();
    let checksum = u64::from(Checksum::of([&head, &ranges]).value()).to_le_bytes();
    let run = [&head[..], &checksum, &ranges].concat();
    // SAFETY: no other thread uses the region.
    unsafe { sim.write(at, &run) };
    sim.flush(at.span(run.len() as u64));
    sim.order();
}

/// Returns the largest number of changes that an opening undoes after a crash now.
fn undone_count(sim: &Sim, canary: Option<Canary>) -> usize {
    let undone_of = |image| {
        let sim = canary.into_iter().fold(Sim::from_image(image, Model::Line), Sim::with_canary);
        let heap = Heap::open(&sim, EngineNumber::INK, SimDram).unwrap();
        Lanes::open(&sim, &heap, LANE_COUNT, SimDram).unwrap().recover(&sim).unwrap().undone_count
    };
    sim.images(8, 1).iter().map(undone_of).max().expect("an image")
}

/// A DAX device of which only the beginning was wiped, so that it looks fresh.
fn after_a_store_before(canary: Option<Canary>) -> usize {
    let sim = sim(canary);
    for lane in 0..LANE_COUNT {
        forge(&sim, unit_start(FIRST_CHUNK_UNIT + lane as u32).plus(CHUNK_HEADER_BYTES), lane);
    }
    let (_heap, lanes) = format(&sim);
    assert_eq!(lanes.log(1).offset, unit_start(FIRST_CHUNK_UNIT + 1).plus(CHUNK_HEADER_BYTES));
    undone_count(&sim, canary)
}

/// The space held a value that was freed; the power fails at any step of making it a log.
fn after_a_value(canary: Option<Canary>) -> usize {
    let sim = sim(canary);
    let (heap, lanes) = format(&sim);
    let value = heap.reserve_extent(&sim, LONG_BYTES).unwrap().publish();
    forge(&sim, value.offset, 0);
    heap.free(&sim, value);
    let undone = Arc::new(AtomicUsize::new(0));
    let highest = Arc::clone(&undone);
    sim.observe(Box::new(move |sim, _| _ = highest.fetch_max(undone_count(sim, canary), Ordering::Relaxed)));
    lanes.take_exactly(0).fit_log(&sim, &heap, LONG_BYTES - layout::RUN_HEADER_BYTES).unwrap();
    sim.unobserve();
    assert_eq!(lanes.log(0), value);
    undone.load(Ordering::Relaxed)
}

#[test]
fn stale_bytes_are_no_run() {
    assert_eq!((after_a_store_before(None), after_a_value(None)), (0, 0));
}

#[test]
fn unchanged_leftover_logs_are_caught() {
    let variant = Some(canary::LOG_LEFT_AS_FOUND);
    assert_eq!((after_a_store_before(variant), after_a_value(variant)), (LANE_COUNT, 1));
}

/// Reserves space for three logs.
fn places(sim: &Sim, heap: &Heap<SimDram>) -> Vec<Offset> {
    (0..3).map(|_| heap.reserve_extent(sim, layout::LOG_BYTES).unwrap().publish().offset).collect()
}

/// A sweep runs when the lane already has its new log, and ends before the old one is freed. Then and later, other
/// callers reserve space.
#[test]
fn replaced_log_gets_one_owner_under_sweep() {
    let sim = sim(None);
    drop(format(&sim));
    let heap = Arc::new(Heap::open(&sim, EngineNumber::INK, SimDram).unwrap());
    let lanes = Arc::new(Lanes::open(&sim, &heap, LANE_COUNT, SimDram).unwrap());
    lanes.recover(&sim).unwrap();
    let given = Arc::new(Mutex::new(Vec::new()));
    let (old, known, swept, noted) = (lanes.log(0), Arc::clone(&lanes), Arc::clone(&heap), Arc::clone(&given));
    sim.observe(Box::new(move |sim, _| {
        if known.log(0) != old && !swept.is_swept() {
            (0..LANE_COUNT).for_each(|lane| _ = swept.sweep().mark_reached(known.log(lane)).unwrap());
            swept.sweep().finish(sim);
            noted.lock().unwrap().extend(places(sim, &swept));
        }
    }));
    lanes.take_exactly(0).fit_log(&sim, &heap, LONG_BYTES).unwrap();
    sim.unobserve();
    let given = [std::mem::take(&mut *given.lock().unwrap()), places(&sim, &heap)].concat();
    assert!(given.len() == 6 && given.contains(&old.offset), "{given:?}");
    assert_eq!(given.iter().collect::<HashSet<_>>().len(), 6, "{given:?}");
}
