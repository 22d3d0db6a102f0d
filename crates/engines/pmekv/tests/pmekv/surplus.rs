//! Slots of nodes that deletes leave in an exhausted region: other keys find them there, and so does any other write
//! that finds no space elsewhere.

use engine::prelude::*;
use engine_pmekv::{Options, Pmekv, canary};
use heap::Parameters;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::scarce::{delete, put};
use crate::subject::{OnSim, PARAMETERS, free_all, is_sound, scattered_key as key};

/// A region with so many keys that its nodes have slots in two chunks, and so few that one chunk is enough for a
/// quarter of them.
const REGION_BYTES: u64 = 11 << 20;
const VALUE_BYTES: usize = 700;

/// Returns a full region in which three of four keys were deleted, and the number of keys before. The deletes leave no
/// chunk empty.
fn thinned(canary: Canary) -> (Sim, OnSim, u32) {
    let sim = Sim::new(0, Model::Line).with_canary(canary);
    let parameters = Parameters { partition_count: 16, region_bytes: REGION_BYTES, ..PARAMETERS };
    let store = Pmekv::format(sim.clone(), HostDram, &parameters, Options::default()).unwrap();
    sim.fail_grow_after(0);
    let count = (0..).take_while(|&number| put(&store, number, &[VALUE_BYTES])).count() as u32;
    deleted(count).for_each(|number| delete(&store, number));
    free_all(&store);
    (sim, store, count)
}

fn deleted(count: u32) -> impl Iterator<Item = u32> {
    (0..count).filter(|number| number % 4 > 0)
}

/// Returns the store as a crash leaves it.
fn opened_again(sim: &Sim, store: OnSim, canary: Canary) -> (Sim, OnSim) {
    drop(store);
    let sim = Sim::from_image(&sim.images(1, 0).remove(0), Model::Line).with_canary(canary);
    sim.fail_grow_after(0);
    (sim.clone(), Pmekv::open(sim, HostDram, Options::default()).unwrap())
}

fn takes_others(store: &OnSim, count: u32) -> bool {
    free_all(store);
    let takes = deleted(count).all(|number| put(store, count + number, &[VALUE_BYTES]));
    is_sound(store);
    takes
}

/// Returns true if other keys fit into the space of those that were deleted before a crash.
fn takes_others_after_a_crash(canary: Canary) -> bool {
    let (sim, store, count) = thinned(canary);
    takes_others(&opened_again(&sim, store, canary).1, count)
}

#[test]
fn deleted_slots_are_kept_for_reuse() {
    assert!(takes_others_after_a_crash(Canary("none")));
    assert!(!takes_others_after_a_crash(canary::SURPLUS_NOT_KEPT));
}

/// Each opening makes a checkpoint before one of its writes finds the region full, and a close makes another. Some of
/// the last keys fit only when the reserve frees its surplus.
#[test]
fn checkpoints_survive_reopening() {
    let (mut sim, mut store, count) = thinned(Canary("none"));
    for round in 0..3 {
        (sim, store) = opened_again(&sim, store, Canary("none"));
        // A log entry, which each checkpoint needs.
        assert!(store.put(&key(0), &[round; VALUE_BYTES]).is_ok());
        store.checkpoint().unwrap();
        assert!(store.put(&key(0), &[round; VALUE_BYTES]).is_ok());
        store.close().unwrap();
    }
    assert!(takes_others(&store, count));
}

/// Returns the used bytes before and after the region grew, after checkpoints.
fn live_bytes_around_growth(canary: Canary) -> (u64, u64) {
    let (sim, store, count) = thinned(canary);
    let behind_checkpoint = || {
        assert!(put(&store, 0, &[VALUE_BYTES]));
        store.checkpoint().unwrap();
        free_all(&store);
        store.stats().live_bytes
    };
    let before = behind_checkpoint();
    sim.fail_grow_after(u64::MAX);
    store.put(&key(count), &vec![7; REGION_BYTES as usize]).unwrap();
    store.delete(&key(count)).unwrap();
    (before, behind_checkpoint())
}

#[test]
fn region_that_grew_keeps_no_surplus() {
    let (before, after) = live_bytes_around_growth(Canary("none"));
    let (least_before, least_after) = live_bytes_around_growth(canary::SURPLUS_NOT_KEPT);
    assert!(before > least_before);
    assert_eq!(after, least_after);
}

/// A region that could grow is also exhausted whenever its mark is near its end. No later write may come to free the
/// surplus of the cleared store.
#[test]
fn cleared_region_keeps_no_surplus() {
    let cleared = |canary| {
        let (_sim, store, count) = thinned(canary);
        store.clear().unwrap();
        free_all(&store);
        is_sound(&store);
        (store, count)
    };
    let ((store, count), (least, _)) = (cleared(Canary("none")), cleared(canary::SURPLUS_NOT_KEPT));
    assert_eq!(store.stats().live_bytes, least.stats().live_bytes);
    let [fitting, most] =
        [&store, &least].map(|store| (0..count).take_while(|n| put(store, *n, &[VALUE_BYTES])).count());
    assert!(fitting >= most, "{fitting} of {most}");
}
