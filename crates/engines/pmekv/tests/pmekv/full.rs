//! A full region that cannot grow: operations that free space continue to work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Clock, Expiry, Hasher, Progress};
use engine_pmekv::{Options, Pmekv, canary};
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim, StepKind};
use testkit::wait_count;

use crate::subject::{OPTIONS, OnSim, PARAMETERS, free_all, is_full, scattered_key as key};

/// The length of a value that does not fit even after deletes.
const LARGE_BYTES: usize = 3_000_000;

/// Puts keys until there is no more space. Returns their number.
fn fill(sim: &Sim, store: &OnSim) -> u32 {
    sim.fail_grow_after(0);
    let put = |number: &u32| match store.put(&key(*number), &[7; 100]) {
        Ok(()) => true,
        Err(error) if is_full(&error) => false,
        Err(error) => panic!("{error}"),
    };
    (0..).take_while(put).count() as u32
}

/// Each opening begins its own segments, for which there is space.
#[test]
fn keys_are_deleted_after_each_opening() {
    let mut sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    let count = fill(&sim, &store);
    assert!(count > 2_000);
    drop(store);
    for number in 0..30u32 {
        sim = Sim::from_image(&sim.images(1, 0).remove(0), Model::Line);
        sim.fail_grow_after(0);
        let store = Pmekv::open(sim.clone(), HostDram, Options::default()).unwrap();
        assert_eq!(store.len().unwrap(), u64::from(count - number));
        assert!(store.delete(&key(number)).unwrap(), "{number}");
    }
}

/// One of two lanes has used its segment ahead of need, and the other has space only in such a segment. After an
/// opening, one extent is left for both.
#[test]
fn full_lane_gets_space_reserved_for_deletes() {
    let of_lane = |lane: u64| (0..).map(key).filter(move |key| Hasher::new(7).signature(key) >> 32 & 1 == lane);
    for full in [0, 1] {
        // With a reserve, a checkpoint would free space.
        let sim = Sim::new(0, Model::Line).with_canary(canary::NODES_NOT_RESERVED);
        let short_segments = Options { segment_entry_count: 20, ..Options::default() };
        let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, short_segments).unwrap();
        (0..2).flat_map(|lane| of_lane(lane).take(8)).for_each(|key| store.put(&key, b"").unwrap());
        sim.fail_grow_after(0);
        let fillers = (1_000_000..).take_while(|number| store.put(&key(*number), &[7; 4_000]).is_ok()).count();
        assert!(fillers > 20 && fillers < 250, "{fillers}");
        // A delete gets the last entry of the segment, and the next delete begins the segment that only deletes may
        // begin.
        for (lane, delete_count) in [(full, 1), (1 - full, 2)] {
            let mut keys = of_lane(lane);
            let first = keys.next().unwrap();
            while store.put(&first, b"").is_ok() {}
            keys.take(delete_count).for_each(|key| assert!(store.delete(&key).unwrap()));
        }
        drop(store);
        let sim = Sim::from_image(&sim.images(1, 0).remove(0), Model::Line);
        sim.fail_grow_after(0);
        let store = Pmekv::open(sim.clone(), HostDram, short_segments).unwrap();
        for lane in [full, 1 - full] {
            of_lane(lane).skip(3).take(3).for_each(|key| assert!(store.delete(&key).unwrap(), "lane {lane}"));
        }
    }
}

/// The background's checkpoint finds no space for its nodes, as in a store of a version without a reserve, or the
/// region cannot grow for another reason.
#[test]
fn expired_keys_are_deleted_without_checkpoint() {
    reaps_all_where_growth_fails(&|sim| sim.fail_grow_after(0));
    reaps_all_where_growth_fails(&|sim| sim.fail_grow_with(MediumError::Os { errno: 5 }));
}

fn reaps_all_where_growth_fails(fail: &dyn Fn(&Sim)) {
    let (sim, clock) = (Sim::new(0, Model::Line).with_canary(canary::NODES_NOT_RESERVED), Clock::manual(1));
    let short = Options { log_entry_count_max: 60, ..Options::default() };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, short).unwrap().by_clock(clock.clone());
    store.put(b"small", b"").unwrap();
    sim.fail_grow_after(2);
    let large = |number: &u32| store.put_until(&key(*number), &[7; 60_000], Expiry::at_ms(10)).is_ok();
    let count = (0..).take_while(large).count();
    fail(&sim);
    // As large as nodes.
    let fillers = (1_000..).take_while(|number| store.put(&key(*number), &[7; 4_000]).is_ok()).count();
    assert!(count > 2);
    for number in 0..40 {
        store.put(b"small", &[number; 4]).unwrap();
        // Readers of other tests' stores delay the freeing of replaced records.
        free_all(&store);
    }
    assert!(store.checkpoint().is_err());
    clock.advance(Duration::from_millis(20));
    while store.step().unwrap() == Progress::More {}
    assert_eq!(store.len().unwrap(), 1 + fillers as u64);
    free_all(&store);
    store.checkpoint().unwrap();
}

/// A batch whose entries find no space keeps none of the space that it had found: what fitted before still fits.
#[test]
fn refused_batch_uses_no_space() {
    for is_refused in [false, true] {
        let sim = Sim::new(0, Model::Line);
        let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
        let keys: Vec<_> = (0..600).map(key).collect();
        keys.iter().for_each(|key| store.put(key, b"value").unwrap());
        store.put(b"large", &[7; 200_000]).unwrap();
        sim.fail_grow_after(0);
        assert!(store.delete(b"large").unwrap());
        free_all(&store);
        if is_refused {
            let deletes: Vec<_> = keys.iter().map(|key| BatchOp::Delete { key }).collect();
            assert!(store.write_batch(&deletes).is_err_and(|error| is_full(&error)));
        }
        store.put(b"large", &[7; 100_000]).unwrap();
        assert_eq!(store.len().unwrap(), 601);
    }
}

/// A write that finds no space does not make checkpoints that would free none, because each reads all keys.
#[test]
fn refused_writes_start_no_checkpoints() {
    let sim = Sim::new(0, Model::Line);
    let short = Options { log_entry_count_max: 60, ..Options::default() };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, short).unwrap();
    let count = fill(&sim, &store);
    while store.put(&key(2_000_000 + store.len().unwrap() as u32), &[7; 4_000]).is_ok() {}
    let written = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&written);
    sim.observe(Box::new(move |_, kind| {
        noted.fetch_add(usize::from(kind == StepKind::Stream), Ordering::Relaxed);
    }));
    assert!(store.delete(&key(0)).unwrap());
    written.store(0, Ordering::Relaxed);
    store.checkpoint().unwrap();
    let once = written.swap(0, Ordering::Relaxed);
    assert!(once > 2, "{once} nodes and a record");
    let large = vec![7; LARGE_BYTES];
    for number in 1..=50 {
        // Another write in between, whose entry is streamed.
        assert!(store.delete(&key(number)).unwrap());
        assert!(store.put(b"large", &large).is_err());
        store.step().unwrap();
    }
    let in_vain = written.load(Ordering::Relaxed) - 50;
    assert!(in_vain < 2 * once, "{in_vain} nodes were written, {once} are one checkpoint");
    sim.unobserve();
    // Once there is space again, a checkpoint finds it.
    (51..count).for_each(|number| assert!(store.delete(&key(number)).unwrap()));
    free_all(&store);
    store.put(b"small", &[7; 100]).unwrap();
    store.checkpoint().unwrap();
}

/// The reaper's deletes need more log than there is, and a checkpoint frees it.
#[test]
fn reaper_frees_space_for_its_writes() {
    let (sim, clock) = (Sim::new(0, Model::Line), Clock::manual(1));
    let many_segments = Options { log_entry_count_max: 100_000, segment_entry_count: 10 };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, many_segments).unwrap().by_clock(clock.clone());
    let fillers = 1_000_000..1_000_004;
    fillers.clone().for_each(|number| store.put(&key(number), &[7; 4_000]).unwrap());
    let due = |number: u32| store.put_until(&key(number), &[7; 100], Expiry::at_ms(10));
    (0..400).for_each(|number| due(number).unwrap());
    store.checkpoint().unwrap();
    sim.fail_grow_after(0);
    while store.put(&key(2_000_000 + store.len().unwrap() as u32), &[7; 60_000]).is_ok() {}
    clock.advance(Duration::from_millis(20));
    fillers.for_each(|number| assert!(store.delete(&key(number)).unwrap()));
    free_all(&store);
    while store.step().unwrap() == Progress::More {}
    assert_eq!(store.stats().reaped_count, 400);
}

/// A streamed value that finds no space for its log entry waits for a checkpoint, as every other write does.
#[test]
fn streamed_value_makes_space_for_its_entry() {
    let sim = Sim::new(0, Model::Line);
    // Every third write of a lane needs a segment, and a checkpoint frees segments.
    let many_segments = Options { log_entry_count_max: 1_000, segment_entry_count: 3 };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, many_segments).unwrap();
    store.put(b"streamed", &[1; 100]).unwrap();
    store.checkpoint().unwrap();
    sim.fail_grow_after(0);
    for number in 0..200 {
        store.put_from_until(b"streamed", 100, &mut &[number; 100][..], Expiry::NEVER).unwrap();
    }
}

/// If nothing waits to be freed, or if the writer itself blocks the freeing, a writer that finds no space fails
/// immediately.
#[test]
fn unavailable_space_is_not_waited_for() {
    let sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    let count = fill(&sim, &store);
    let large = || assert!(store.put(&key(count), &vec![7; LARGE_BYTES]).is_err());
    assert_eq!(wait_count(large), 0, "nothing was replaced");
    let inside = || {
        assert!(store.delete(&key(1)).unwrap());
        large();
    };
    assert_eq!(wait_count(|| assert!(store.get(&key(0), &mut |_, _, _| inside()).unwrap())), 0, "inside a callback");
}
