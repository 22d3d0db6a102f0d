//! Keys that expire, without crashes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Check, Clock, Depth, Expiry, Progress};
use engine_ink::{Ink, Options};
use pmem::{Bytes, Offset};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim, StepKind};
use testkit::{expired_keys_stay_few, keys_expire_and_are_reaped};

use crate::subject::PARAMETERS;

#[test]
fn key_expires_then_is_reaped_and_reported() {
    let clock = Clock::manual(100);
    let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, Options::default()).unwrap();
    keys_expire_and_are_reaped(&store.by_clock(clock.clone()), &clock);
}

/// A new expiry writes the value again, with a checksum that fits.
#[test]
fn value_that_rots_is_not_made_whole() {
    let sim = Sim::new(0, Model::Line);
    let store = Ink::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    store.put(b"key", b"a value to be found by its bytes").unwrap();
    let word = |at: u64| sim.load(Offset(at), Ordering::Acquire);
    let at = (0..sim.len_bytes()).step_by(8).find(|&at| word(at).to_le_bytes() == *b"to be fo").expect("it is there");
    sim.store(Offset(at), !word(at), Ordering::Release);
    assert!(store.get(b"key", &mut |_, _, _| {}).unwrap(), "reads compare nothing");
    assert!(store.expire(b"key", Expiry::at_ms(u64::MAX - 1)).is_err());
    let (mut check, mut damage) = (Check::new(Depth::Deep), Vec::new());
    store.check(&mut check, &mut |found| damage.push(found.what)).unwrap();
    assert_eq!(damage.len(), 1, "{damage:?}");
}

/// Keys behind a damaged key are reaped, except in its own leaf; a later pass reaps keys that expire then.
#[test]
fn damage_stops_the_reaper_at_one_leaf() {
    let (clock, sim) = (Clock::manual(100), Sim::new(0, Model::Line));
    let options = Options { order: 7, ..Options::default() };
    let store = Ink::format(sim.clone(), HostDram, &PARAMETERS, options).unwrap().by_clock(clock.clone());
    let key = |i: u64| format!("key {i:04}").into_bytes();
    (0..200).for_each(|i| store.put_until(&key(i), b"value", Expiry::at_ms(if i < 50 { 200 } else { 150 })).unwrap());
    let word = |at: u64| sim.load(Offset(at), Ordering::Acquire);
    let flip = |i: u64| {
        for at in (0..sim.len_bytes()).step_by(8).filter(|&at| word(at).to_le_bytes()[..] == key(i)[..]) {
            sim.store(Offset(at), word(at) ^ 1, Ordering::Release);
        }
    };
    // One in the middle, and the last one, which has no leaf behind it.
    flip(100);
    flip(199);
    clock.advance(Duration::from_millis(50));
    while store.step().unwrap() == Progress::More {}
    let reaped = store.stats().reaped_count;
    assert!((150 - 14..150).contains(&reaped), "{reaped}");
    clock.advance(Duration::from_millis(50));
    while store.step().unwrap() == Progress::More {}
    assert_eq!(store.stats().reaped_count, reaped + 50);
}

/// A batch that found no space is tried again once the free space is known. A key that it found expired may be gone
/// and reported by then.
#[test]
fn retried_batch_reports_each_key_once() {
    let sim = Sim::new(0, Model::Line);
    let store = Ink::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    let large = |number: u8| store.put(&[number], &[7; 60_000]);
    (0..20).for_each(|number| large(number).unwrap());
    store.put_until(b"due", b"value", Expiry::at_ms(150)).unwrap();
    (0..20).for_each(|number| assert!(store.delete(&[number]).unwrap()));
    drop(store);
    let (sim, clock) = (Sim::from_image(&sim.images(1, 0).remove(0), Model::Line), Clock::manual(200));
    let store = Arc::new(Ink::open(sim.clone(), HostDram, Options::default()).unwrap().by_clock(clock));
    store.write_batch(&[BatchOp::Put { key: b"small", value: b"" }]).unwrap();
    sim.fail_grow_after(0);
    let (reported, other, is_met) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&store), AtomicBool::new(false));
    let noted = Arc::clone(&reported);
    store.on_expired(Some(Arc::new(move |key| noted.lock().unwrap().push(key.to_vec()))));
    // The first step other than growth and preparation is the sweep's: nothing was written for an attempt without
    // space.
    sim.observe(Box::new(move |_, kind| {
        if !matches!(kind, StepKind::Grow | StepKind::Back) && !is_met.swap(true, Ordering::Relaxed) {
            assert!(!other.tree().heap().is_swept() && !other.delete(b"due").unwrap());
        }
    }));
    // More than the space above the mark, and less than the freed values.
    let (large, due) = (vec![8; 1_500_000], b"due");
    store.write_batch(&[BatchOp::Put { key: due, value: b"new" }, BatchOp::Put { key: b"a", value: &large }]).unwrap();
    sim.unobserve();
    assert_eq!(*reported.lock().unwrap(), [b"due".to_vec()]);
    assert_eq!(store.expiry(b"due").unwrap(), Some(Expiry::NEVER));
}

#[test]
fn reaper_keeps_up_with_constant_writes() {
    let clock = Clock::manual(100);
    let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, Options::default()).unwrap();
    expired_keys_stay_few(&store.by_clock(clock.clone()), &clock);
}
