//! Batches with conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pmem::Canary;
use pmem_sim::{Model, Sim};
use testkit::{Contention, Paired, contend};

use super::rig::{REGION_BYTES, Rig};
use crate::canary;
use engine::prelude::*;
use engine::{BatchOp, Condition, Decision, Error, Expiry, Required};

const PUT: BatchOp<'_> = BatchOp::Put { key: b"other", value: b"new" };

fn absent(key: &[u8]) -> Condition<'_> {
    Condition { key, required: Required::Absent }
}

fn unchanged<'a>(rig: &Rig, key: &'a [u8]) -> Condition<'a> {
    Condition { key, required: Required::Version(rig.version(key)) }
}

fn unmet(done: Result<(), Error>) -> Option<usize> {
    match done {
        Ok(()) => None,
        Err(Error::ConditionFailed { condition }) => Some(condition),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn first_failing_condition_is_named() {
    let rig = Rig::new();
    ["a", "b"].iter().for_each(|key| rig.put(key.as_bytes(), b"value"));
    let seen = unchanged(&rig, b"a");
    rig.put(b"a", b"later");
    let now = unchanged(&rig, b"a");
    for (conditions, wanted) in [
        (vec![now, absent(b"c"), unchanged(&rig, b"b")], None),
        (vec![now, seen, absent(b"b")], Some(1)),
        (vec![absent(b"b"), seen], Some(0)),
        (vec![now, Condition { key: b"c", ..seen }], Some(1)),
        (vec![absent(b"other"), now, now], None),
    ] {
        rig.store.delete(b"other").unwrap();
        assert_eq!(unmet(rig.store.write_batch_if(&conditions, &[PUT])), wanted, "{conditions:?}");
        assert_eq!(rig.get(b"other").unwrap().is_some(), wanted.is_none());
    }
    assert_eq!(unmet(rig.store.write_batch_if(&[now, absent(b"c")], &[])), None, "only conditions");
    assert_eq!(unmet(rig.store.write_batch_if(&[now, seen], &[])), Some(1));
    let fences = rig.cost(|| assert_eq!(unmet(rig.store.write_batch_if(&[seen], &[PUT])), Some(0))).fence_count;
    assert_eq!(fences, 0, "the new item needs no fence before it is named");
}

#[test]
fn key_that_has_expired_is_absent() {
    let rig = Rig::new();
    rig.store.put_until(b"key", b"value", Expiry::at_ms(1)).unwrap();
    assert_eq!(unmet(rig.store.write_batch_if(&[absent(b"key")], &[PUT])), None);
    rig.store.put_until(b"key", b"value", Expiry::at_ms(u64::MAX >> 20)).unwrap();
    assert_eq!(unmet(rig.store.write_batch_if(&[absent(b"key")], &[PUT])), Some(0));
    let seen = unchanged(&rig, b"key");
    assert!(rig.store.expire(b"key", Expiry::NEVER).unwrap());
    assert_eq!(unmet(rig.store.write_batch_if(&[seen], &[PUT])), Some(0), "when it expires belongs to its version");
}

/// Another thread changes the key while the batch's item is written. Returns the batch's failed condition.
fn overtaken(variant: Option<Canary>) -> Option<usize> {
    let sim = Sim::new(REGION_BYTES, Model::Line);
    let rig = Arc::new(Rig::on(variant.map_or(sim.clone(), |canary| sim.with_canary(canary))));
    rig.put(b"key", b"value");
    // The first batch of a store sets a flag in the superblock before anything else.
    rig.store.write_batch(&[PUT]).unwrap();
    let (seen, other, came) = (unchanged(&rig, b"key"), Arc::downgrade(&rig), AtomicBool::new(false));
    rig.sim().observe(Box::new(move |_, _| {
        if let Some(rig) = other.upgrade().filter(|_| !came.swap(true, Ordering::Relaxed)) {
            assert!(rig.store.update(b"key", &mut |_| Decision::Put(b"changed".into())).unwrap());
        }
    }));
    let reported = unmet(rig.store.write_batch_if(&[seen], &[PUT]));
    rig.sim().unobserve();
    assert_eq!(rig.get(b"key").unwrap().as_deref(), Some(&b"changed"[..]));
    reported
}

#[test]
fn conditions_are_judged_under_the_locks() {
    assert_eq!(overtaken(None), Some(0));
    assert_eq!(overtaken(Some(canary::CONDITION_OUTSIDE_LOCK)), None, "the broken variant was not caught");
}

#[test]
fn written_key_keeps_its_condition() {
    let write = BatchOp::Put { key: b"key", value: b"new" };
    let reported = |rig: &Rig| {
        rig.put(b"key", b"value");
        unmet(rig.store.write_batch_if(&[absent(b"key")], &[write]))
    };
    assert_eq!(reported(&Rig::new()), Some(0));
    let variant = Sim::new(REGION_BYTES, Model::Line).with_canary(canary::CONDITION_OF_WRITTEN_KEY_FORGOTTEN);
    assert_eq!(reported(&Rig::on(variant)), None, "the broken variant was not caught");
}

/// Pairs of keys that conditions over both keep equal are registers, like single keys.
#[test]
fn histories_over_two_keys_are_linearizable() {
    for seed in 0..3 {
        let contention = Contention {
            thread_count: 3,
            call_count: 500,
            key_count: 3,
            swaps: true,
            scans: false,
            clear_every: 100,
            seed,
        };
        let rig = Rig::on(Sim::new(REGION_BYTES, Model::Span));
        let judged = contend(&Paired(&rig.store), &contention).unwrap_or_else(|disorder| panic!("{disorder}"));
        assert!(judged >= 1500);
    }
}
