//! Keys that expire, without crashes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Clock, Expiry, Progress};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{expired_keys_stay_few, keys_expire_and_are_reaped};

use crate::hooked::{Access, Hooked, hook, set_failing, unhook};
use crate::splits::key;
use crate::subject::PARAMETERS;

#[test]
fn key_expires_then_is_reaped_and_reported() {
    let clock = Clock::manual(100);
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    keys_expire_and_are_reaped(&store.by_clock(clock.clone()), &clock);
}

/// The reaper walks the whole table while the item is written and not yet published: it is notified afterwards.
#[test]
fn missed_item_is_reaped_by_next_walk() {
    let clock = Clock::manual(100);
    let store = RewoHash::format(Hooked::on(Sim::new(0, Model::Span)), HostDram, &PARAMETERS).unwrap();
    let store = Rc::new(store.by_clock(clock.clone()));
    while store.step().unwrap() == Progress::More {}
    let (walked, walker) = (Rc::new(Cell::new(false)), Rc::clone(&store));
    let has_walked = Rc::clone(&walked);
    hook(move |_| {
        if !has_walked.replace(true) {
            while walker.step().unwrap() == Progress::More {}
        }
    });
    store.put_until(b"k", b"v", Expiry::at_ms(150)).unwrap();
    unhook();
    assert!(walked.get());
    clock.advance(Duration::from_millis(50));
    while store.step().unwrap() == Progress::More {}
    assert_eq!((store.len().unwrap(), store.stats().reaped_count), (0, 1));
}

/// Keys are added all the time, so the background has full buckets to look for in each step: expired keys are reaped
/// nevertheless.
#[test]
fn new_keys_do_not_delay_expiry() {
    let (clock, parameters) = (Clock::manual(100), Parameters { partition_count: 16, ..PARAMETERS });
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &parameters).unwrap();
    let store = store.by_clock(clock.clone()).pre_evicting(true);
    while store.step().unwrap() == Progress::More {}
    (0..100).for_each(|i| store.put_until(&key(i), b"due", Expiry::at_ms(150)).unwrap());
    clock.advance(Duration::from_millis(50));
    // Two alternating walks, each of sixteen segments.
    let mut more_count = 0;
    for i in 100..200 {
        store.put(&key(i), b"new").unwrap();
        // Like a key that takes the last slot of a bucket.
        store.write_batch(&[BatchOp::Put { key: &key(i), value: b"newer" }]).unwrap();
        more_count += u32::from(store.step().unwrap() == Progress::More);
    }
    assert!(more_count > 90, "there was nothing to walk for: {more_count}");
    assert_eq!(store.stats().reaped_count, 100);
}

/// A log whose first wait succeeds and whose second fails: keys deleted by then are reported, and the walk continues.
#[test]
fn failing_walk_reports_reaped_and_continues() {
    let (clock, parameters) = (Clock::manual(100), Parameters { partition_count: 16, ..PARAMETERS });
    let store = RewoHash::format(Hooked::on(Sim::new(0, Model::Span)), HostDram, &parameters).unwrap();
    let store = store.by_clock(clock.clone());
    let reported = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&reported);
    store.on_expired(Some(Arc::new(move |_| *noted.lock().unwrap() += 1)));
    while store.step().unwrap() == Progress::More {}
    (0..100).for_each(|i| store.put_until(&key(i), b"due", Expiry::at_ms(150)).unwrap());
    clock.advance(Duration::from_millis(50));
    let waits = Cell::new(0);
    hook(move |access| {
        waits.set(waits.get() + u32::from(access == Access::Wait));
        set_failing(waits.get() > 1);
    });
    let mut step = store.step();
    while step.as_ref().is_ok_and(|progress| *progress == Progress::More) {
        step = store.step();
    }
    unhook();
    set_failing(false);
    assert!(step.is_err());
    assert_eq!((*reported.lock().unwrap(), store.stats().reaped_count), (1, 1));
    while store.step().unwrap() == Progress::More {}
    assert_eq!((store.len().unwrap(), store.stats().reaped_count), (0, 99), "one key may be deleted or not");
    assert_eq!(*reported.lock().unwrap(), 99);
}

#[test]
fn reaper_keeps_up_with_constant_writes() {
    let clock = Clock::manual(100);
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    expired_keys_stay_few(&store.by_clock(clock.clone()), &clock);
}
