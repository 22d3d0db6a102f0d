//! Keys that expire: absent for every reader immediately, and removed after the reaper's next round.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use heap::FEATURE_EXPIRY;
use parking_lot::Mutex;
use pmem::Bytes;
use pmem_sim::{Model, Sim};

use super::rig::{REGION_BYTES, Rig};
use crate::canary;
use crate::reap::{Expired, ReapStep};
use engine::prelude::*;
use engine::{BatchOp, Clock, Decision, Error, Expiry, Progress, WantedThreads};

const SECOND: Duration = Duration::from_secs(1);

struct Timed {
    rig: Rig,
    clock: Clock,
}

impl Timed {
    fn new() -> Timed {
        Timed::on(Sim::new(REGION_BYTES, Model::Line))
    }

    fn on(sim: Sim) -> Timed {
        let clock = Clock::manual(1_000_000);
        Timed { rig: Rig { store: Rig::on(sim).store.by_clock(clock.clone()) }, clock }
    }

    fn reopened(self) -> Timed {
        let Timed { rig, clock } = self;
        Timed { rig: Rig { store: rig.reopened().store.by_clock(clock.clone()) }, clock }
    }

    fn put_for(&self, key: &[u8], value: &[u8], time: Duration) {
        self.rig.store.put_until(key, value, self.clock.after(time)).unwrap();
    }

    fn expiry(&self, key: &[u8]) -> Option<Expiry> {
        self.rig.store.expiry(key).unwrap()
    }

    /// Does the background's steps until no work is left.
    fn work(&self) {
        while self.rig.store.step().unwrap() == Progress::More {}
    }

    fn len(&self) -> u64 {
        self.rig.store.len().unwrap()
    }
}

fn assert_absent(timed: &Timed, key: &[u8]) {
    let store = &timed.rig.store;
    assert_eq!(timed.rig.get(key).unwrap(), None);
    store.multi_get(&[key], &mut |_, value| assert_eq!(value, None)).unwrap();
    assert!(!timed.rig.contents().contains_key(key));
    assert_eq!(timed.expiry(key), None);
    assert!(!store.expire(key, Expiry::NEVER).unwrap());
    let changed = store.update(key, &mut |held| {
        assert_eq!(held, None);
        Decision::Keep
    });
    assert!(!changed.unwrap());
}

#[test]
fn batch_puts_keys_that_expire() {
    let timed = Timed::new();
    let (store, soon, late) = (&timed.rig.store, timed.clock.after(SECOND), timed.clock.after(9 * SECOND));
    let put = |key, expiry| BatchOp::PutUntil { key, value: b"value", expiry };
    timed.put_for(b"renewed", b"old", SECOND);
    timed.put_for(b"kept", b"old", SECOND);
    let ops =
        [put(b"soon", soon), put(b"late", late), put(b"renewed", late), BatchOp::Put { key: b"kept", value: b"" }];
    store.write_batch(&ops).unwrap();
    assert_eq!((timed.expiry(b"soon"), timed.expiry(b"late")), (Some(soon), Some(late)));
    assert_eq!((timed.expiry(b"renewed"), timed.expiry(b"kept")), (Some(late), Some(Expiry::NEVER)));
    timed.clock.advance(2 * SECOND);
    assert_absent(&timed, b"soon");
    timed.work();
    assert_eq!((timed.len(), store.stats().reaped_count), (3, 1), "the reaper did not find it");
    timed.clock.advance(9 * SECOND);
    timed.work();
    let timed = timed.reopened();
    assert_eq!(timed.len(), 1);
}

#[test]
fn decision_is_shown_when_key_expires() {
    let timed = Timed::new();
    timed.put_for(b"key", b"value", SECOND);
    let (expiry, mut seen) = (timed.clock.after(SECOND), None);
    timed
        .rig
        .store
        .update(b"key", &mut |held| {
            seen = held.map(|held| (held.value.to_vec(), held.expiry));
            Decision::Keep
        })
        .unwrap();
    assert_eq!(seen, Some((b"value".to_vec(), expiry)));
}

/// By the reaper, or by an earlier writer of the key; not by reads, nor by moves.
#[test]
fn each_expired_item_is_reported_once() {
    let timed = Timed::new();
    let (store, reported) = (&timed.rig.store, Arc::new(Mutex::new(Vec::new())));
    let note = Arc::clone(&reported);
    store.on_expired(Some(Arc::new(move |key: &[u8]| note.lock().push(key.to_vec()))));
    for key in [&b"reaped"[..], b"put", b"deleted", b"updated", b"in a batch", b"in time", b"many"] {
        timed.put_for(key, b"value", SECOND);
    }
    timed.rig.put(b"in time", b"new");
    assert!(reported.lock().is_empty());
    timed.clock.advance(SECOND);
    assert_absent(&timed, b"put");
    timed.rig.put(b"put", b"new");
    assert!(!store.delete(b"deleted").unwrap());
    store.update(b"updated", &mut |_| Decision::Put(b"new".into())).unwrap();
    store.write_batch(&[BatchOp::Delete { key: b"in a batch" }, BatchOp::Put { key: b"in time", value: b"" }]).unwrap();
    store.multi_put(&[(b"many", b"new")]).unwrap();
    timed.work();
    timed.work();
    let mut reported = std::mem::take(&mut *reported.lock());
    reported.sort();
    assert_eq!(reported, [&b"deleted"[..], b"in a batch", b"many", b"put", b"reaped", b"updated"].map(<[u8]>::to_vec));
}

#[test]
fn expired_key_is_absent_then_freed() {
    let timed = Timed::new();
    timed.rig.put(b"stays", b"value");
    timed.put_for(b"key", b"value", 5 * SECOND);
    timed.clock.advance(5 * SECOND - Duration::from_millis(1));
    assert_eq!(timed.rig.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    timed.clock.advance(Duration::from_millis(1));
    assert_absent(&timed, b"key");
    assert_eq!(timed.len(), 2, "it was not reaped yet");
    timed.work();
    assert_eq!((timed.len(), timed.rig.store.stats().reaped_count), (1, 1));
    timed.rig.free_garbage();
    assert_eq!(timed.rig.damage(), [""; 0]);
}

#[test]
fn expired_key_is_deleted_or_reinserted() {
    let timed = Timed::new();
    for number in 0..3u8 {
        timed.put_for(&[number], b"old", SECOND);
    }
    timed.clock.advance(SECOND);
    assert!(!timed.rig.store.delete(&[0]).unwrap());
    timed.rig.put(&[1], b"new");
    assert!(timed.rig.store.update(&[2], &mut |_| Decision::Put(b"new".into())).unwrap());
    timed.work();
    assert_eq!((timed.len(), timed.rig.store.stats().reaped_count), (2, 0), "nothing is left to reap");
    assert_eq!((timed.expiry(&[1]), timed.expiry(&[2])), (Some(Expiry::NEVER), Some(Expiry::NEVER)));
}

#[test]
fn put_clears_expiry_and_update_keeps_it() {
    let timed = Timed::new();
    let (store, expiry) = (&timed.rig.store, timed.clock.after(SECOND));
    timed.put_for(b"key", b"1", SECOND);
    assert!(store.update(b"key", &mut |_| Decision::Put(b"2".into())).unwrap());
    assert_eq!(timed.expiry(b"key"), Some(expiry));
    timed.rig.put(b"key", b"3");
    assert_eq!(timed.expiry(b"key"), Some(Expiry::NEVER));
    assert!(store.update(b"key", &mut |_| Decision::PutUntil(b"4".into(), expiry)).unwrap());
    assert_eq!(timed.expiry(b"key"), Some(expiry));
    store.put_from_until(b"key", 1, &mut &b"5"[..], timed.clock.after(2 * SECOND)).unwrap();
    assert_eq!(timed.expiry(b"key"), Some(timed.clock.after(2 * SECOND)));
    assert_eq!(timed.rig.get(b"key").unwrap().as_deref(), Some(&b"5"[..]));
    assert_eq!(timed.rig.damage(), [""; 0]);
}

#[test]
fn expiry_is_set_changed_and_removed() {
    let timed = Timed::new();
    let store = &timed.rig.store;
    let value = vec![7; 300_000];
    timed.rig.put(b"key", &value);
    assert!(store.expire(b"key", timed.clock.after(SECOND)).unwrap());
    assert!(store.expire(b"key", timed.clock.after(3 * SECOND)).unwrap());
    timed.clock.advance(2 * SECOND);
    assert!(store.expire(b"key", Expiry::NEVER).unwrap());
    timed.clock.advance(10 * SECOND);
    assert_eq!(timed.rig.get(b"key").unwrap(), Some(value));
    assert!(store.expire(b"key", timed.clock.after(Duration::ZERO)).unwrap());
    assert_eq!((timed.len(), timed.rig.get(b"key").unwrap()), (0, None));
}

#[test]
fn restart_forgets_no_expiry() {
    let timed = Timed::new();
    assert!(!timed.rig.store.writer().space().heap().region().has_features(FEATURE_EXPIRY));
    timed.put_for(b"early", b"value", SECOND);
    timed.put_for(b"late", b"value", 10 * SECOND);
    timed.rig.put(b"never", b"value");
    let timed = timed.reopened();
    assert!(timed.rig.store.writer().space().heap().region().has_features(FEATURE_EXPIRY));
    timed.clock.advance(SECOND);
    assert_absent(&timed, b"early");
    timed.work();
    assert_eq!((timed.len(), timed.rig.store.stats().reaped_count), (2, 1));
    timed.clock.advance(10 * SECOND);
    timed.work();
    assert_eq!((timed.len(), timed.rig.store.stats().reaped_count), (1, 2));
    assert_eq!(timed.rig.store.sleep_time(), None);
}

#[test]
fn segments_that_split_hand_their_moments_down() {
    let timed = Timed::new();
    let key = |number: u32| number.to_be_bytes();
    for number in 0..3000 {
        timed.put_for(&key(number), b"value", SECOND * (1 + number % 3));
    }
    assert!(timed.rig.store.stats().figure("split_count").unwrap() > 0.0);
    for left in [2000, 1000, 0] {
        timed.clock.advance(SECOND);
        timed.work();
        assert_eq!(timed.len(), left);
    }
    assert_eq!(timed.rig.store.sleep_time(), None, "nothing expires any more");
}

#[test]
fn step_deletes_few_keys_round_all() {
    const COUNT: u64 = 600;
    let timed = Timed::new();
    (0..COUNT).for_each(|number| timed.put_for(&number.to_be_bytes(), b"value", SECOND));
    timed.clock.advance(SECOND);
    let (mut step_count, mut left) = (0, COUNT);
    while timed.rig.store.step().unwrap() == Progress::More {
        let now = timed.len();
        assert!(left - now <= 256, "{} keys in a step", left - now);
        (step_count, left) = (step_count + 1, now);
    }
    assert!(step_count >= 2);
    assert_eq!(timed.len(), 0);
}

#[test]
fn rounds_are_a_second_apart() {
    let timed = Timed::new();
    timed.put_for(b"first", b"value", SECOND);
    timed.clock.advance(SECOND);
    timed.work();
    timed.put_for(b"second", b"value", SECOND / 2);
    timed.clock.advance(SECOND / 2);
    timed.work();
    assert_eq!(timed.len(), 1);
    assert_eq!(timed.rig.store.sleep_time(), Some(SECOND / 2));
    timed.clock.advance(SECOND / 2);
    timed.work();
    assert_eq!(timed.len(), 0);
}

/// The machine sleeps for a year half way: the next round follows as soon as after any other round.
#[test]
fn clock_jump_in_round_delays_no_key() {
    let timed = Timed::new();
    (0..600u64).for_each(|number| timed.put_for(&number.to_be_bytes(), b"value", SECOND));
    timed.clock.advance(SECOND);
    while timed.len() == 600 {
        timed.rig.store.step().unwrap();
    }
    assert!(timed.len() > 0, "a round was one step");
    timed.clock.advance(365 * 24 * 3600 * SECOND);
    timed.work();
    timed.put_for(b"later", b"value", SECOND);
    timed.clock.advance(2 * SECOND);
    timed.work();
    assert_eq!(timed.len(), 0);
}

#[test]
fn the_background_sleeps_until_something_expires() {
    let timed = Timed::new();
    let store = &timed.rig.store;
    timed.work();
    let was_wanted = store.wanted_threads();
    assert_eq!(store.sleep_time(), None);
    timed.put_for(b"late", b"value", 50 * SECOND);
    assert_eq!(store.wanted_threads(), WantedThreads::One, "the worker sleeps for ever");
    timed.work();
    assert_eq!(store.wanted_threads(), WantedThreads::One, "another thread's steps, for all that the worker knows");
    assert_eq!((store.sleep_time(), store.wanted_threads()), (Some(50 * SECOND), was_wanted));
    timed.put_for(b"later", b"value", 60 * SECOND);
    assert_eq!(store.wanted_threads(), was_wanted, "it will wake early enough");
    timed.put_for(b"early", b"value", 10 * SECOND);
    assert_eq!(store.wanted_threads(), WantedThreads::One);
    timed.work();
    assert_eq!(store.sleep_time(), Some(10 * SECOND));
    store.put_until(b"in a year", b"value", timed.clock.after(365 * 24 * 3600 * SECOND)).unwrap();
    timed.clock.advance(51 * SECOND);
    timed.work();
    assert_eq!(store.sleep_time(), Some(9 * SECOND));
}

/// All keys that the reaper finds.
fn found(timed: &Timed) -> Vec<Expired> {
    let (mut cursor, mut expired) = (index::partitioned_hash::Cursor::default(), Vec::new());
    while !cursor.is_done() {
        cursor = ReapStep::new(timed.rig.store.writer()).find_expired(cursor, &mut 0, &mut expired).unwrap();
    }
    expired
}

/// Two keys expire and are found; one of them is put again before the reaper deletes it. Returns the remaining keys.
fn reap_late(sim: Sim) -> Vec<Vec<u8>> {
    let timed = Timed::on(sim);
    timed.put_for(b"gone", b"old", SECOND);
    timed.put_for(b"renewed", b"old", SECOND);
    timed.clock.advance(SECOND);
    let _pin = epoch::pin();
    let expired = found(&timed);
    assert_eq!(expired.len(), 2);
    timed.rig.put(b"renewed", b"new");
    ReapStep::new(timed.rig.store.writer()).delete_expired(&expired).unwrap();
    timed.rig.contents().into_keys().collect()
}

#[test]
fn key_that_was_renewed_stays() {
    assert_eq!(reap_late(Sim::new(REGION_BYTES, Model::Line)), [b"renewed"]);
}

#[test]
fn reaper_without_second_check_is_caught() {
    let variant = Sim::new(REGION_BYTES, Model::Line).with_canary(canary::REAPS_RENEWED);
    assert!(reap_late(variant).is_empty(), "the broken variant keeps the renewed key");
}

#[test]
fn flipped_bit_never_makes_key_expire() {
    let timed = Timed::new();
    let store = &timed.rig.store;
    // With one bit flipped it has expired.
    store.put_until(b"key", b"value", Expiry::at_ms((1 << 40) + 1)).unwrap();
    let item = timed.rig.position(b"key").offset();
    let flip = |bit: u64| {
        let at = item.plus(bit / 64 * 8);
        let word = timed.rig.sim().load(at, Ordering::Relaxed);
        timed.rig.sim().store(at, word ^ 1 << (bit % 64), Ordering::Relaxed);
    };
    for bit in 0..(24 + 3) * 8 {
        flip(bit);
        let is_there = timed.rig.get(b"key");
        assert!(matches!(is_there, Ok(Some(_)) | Err(Error::Corrupt { .. })), "bit {bit}: {is_there:?}");
        assert_ne!(timed.rig.damage(), [""; 0], "bit {bit}");
        // Makes the reaper visit the segment.
        store.writer().reader().index().lower_due_of(store.writer().cx(), store.writer().reader().signature(b"key"), 1);
        assert!(found(&timed).is_empty(), "bit {bit}");
        flip(bit);
    }
    assert_eq!(timed.rig.damage(), [""; 0]);
}
