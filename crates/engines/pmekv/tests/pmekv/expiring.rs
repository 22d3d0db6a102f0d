//! The reaper finds every expired key, whenever its walk runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Clock, Expiry, Progress};
use engine_pmekv::Pmekv;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{expired_keys_stay_few, keys_expire_and_are_reaped};

use crate::subject::{OPTIONS, OnSim, PARAMETERS};

const SOON: Expiry = Expiry::at_ms(150);

fn walk(store: &OnSim) {
    while store.step().unwrap() == Progress::More {}
}

/// Returns true if a key is reaped that was put while a walk went through the whole tree, before the tree had the key.
fn is_reaped(put: impl Fn(&OnSim)) -> bool {
    let (clock, sim) = (Clock::manual(100), Sim::new(0, Model::Line));
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
    let store = Arc::new(store.by_clock(clock.clone()));
    store.put(b"for ever", b"v").unwrap();
    walk(&store);
    let (walker, has_walked) = (Arc::clone(&store), AtomicBool::new(false));
    sim.observe(Box::new(move |_, _| {
        if !has_walked.swap(true, Ordering::AcqRel) {
            walk(&walker);
        }
    }));
    put(&store);
    sim.unobserve();
    clock.advance(Duration::from_millis(50));
    walk(&store);
    (store.len().unwrap(), store.stats().reaped_count) == (1, 1)
}

#[test]
fn missed_keys_are_reaped_by_next_walk() {
    assert!(is_reaped(|store| store.put_until(b"k", b"v", SOON).unwrap()));
    assert!(is_reaped(|store| store.put_from_until(b"k", 5, &mut &b"value"[..], SOON).unwrap()));
    assert!(is_reaped(|store| store
        .write_batch(&[BatchOp::PutUntil { key: b"k", value: b"v", expiry: SOON }])
        .unwrap()));
}

#[test]
fn key_expires_then_is_reaped_and_reported() {
    let clock = Clock::manual(100);
    let store = Pmekv::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, OPTIONS).unwrap();
    keys_expire_and_are_reaped(&store.by_clock(clock.clone()), &clock);
}

#[test]
fn reaper_keeps_up_with_constant_writes() {
    let clock = Clock::manual(100);
    let store = Pmekv::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, OPTIONS).unwrap();
    expired_keys_stay_few(&store.by_clock(clock.clone()), &clock);
}
