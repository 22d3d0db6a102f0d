//! Splits that stop after every store to a word, in the region or in DRAM, while other threads read and write.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use pmem::{Probe, Probed, Span};
use testkit::{Call, Clock, History, Recorder};

use super::plain::Plain;
use super::rig::{Key, Rig, key, mixed};
use crate::partitioned_hash::layout::Home;
use word::model::chosen::{step, stepping};

/// Reports the medium's steps to the thread's test also.
pub(super) struct Steps;

impl Probe for Steps {
    fn flushed(&self, _span: Span) {
        step();
    }

    fn streamed(&self, _span: Span) {
        step();
    }

    fn fenced(&self) {
        step();
    }
}

pub(super) type Stepped = Rig<Probed<Plain, Steps>>;

pub(super) fn stepped() -> Stepped {
    Rig::format(Probed::with_probe(Plain::new(), Steps), 1)
}

/// A key of each half, and its last value.
const KEYS: [Key; 2] = [Key { signature: 0x77, number: 1 }, Key { signature: 0x77 + (1 << 63), number: 2 }];

impl Stepped {
    /// Returns true if a writer of the key would wait.
    fn is_locked(&self, key: Key) -> bool {
        let segment = self.index.segments.of(key.signature);
        segment.is_locked(Home::of(key.signature).pair)
    }
}

/// Acts as another thread: puts whatever it can, and reads both keys, after each step and in two orders.
fn visit(rig: &Stepped, newest: &[AtomicU64; 2], is_forward: bool) -> u64 {
    let mut order = [0, 1];
    if !is_forward {
        order.reverse();
    }
    let mut put_count = 0;
    for i in order {
        if !rig.is_locked(KEYS[i]) {
            rig.put(KEYS[i], newest[i].fetch_add(1, Ordering::Relaxed) + 1);
            put_count += 1;
        }
        for i in [0, 1] {
            assert_eq!(rig.get(KEYS[i]), Some(newest[i].load(Ordering::Relaxed)), "{:?} is stale", KEYS[i]);
        }
    }
    put_count
}

#[test]
fn writes_are_readable_during_split() {
    for is_forward in [false, true] {
        let (rig, newest) = (Rc::new(stepped()), Rc::new([const { AtomicU64::new(0) }; 2]));
        for depth in 0..4 {
            (0..100).for_each(|number| _ = rig.put(key(mixed(number + 100 * depth), number), number));
            KEYS.into_iter().zip(&*newest).for_each(|(key, newest)| _ = rig.put(key, newest.load(Ordering::Relaxed)));
            let counts = Rc::new([const { AtomicU64::new(0) }; 2]);
            let visitor = {
                let (rig, newest, counts) = (Rc::clone(&rig), Rc::clone(&newest), Rc::clone(&counts));
                move || {
                    counts[0].fetch_add(1, Ordering::Relaxed);
                    counts[1].fetch_add(visit(&rig, &newest, is_forward), Ordering::Relaxed);
                }
            };
            stepping(visitor, || rig.split(KEYS[0].signature));
            assert_eq!(rig.index.split_stats().split_count, depth + 1, "it was chained instead");
            let [steps, puts] = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
            assert!(steps > 12 && puts > 4, "{steps} steps, {puts} puts between them");
            visit(&rig, &newest, is_forward);
        }
    }
}

const KEY_COUNT: u64 = 6;
const CALL_COUNT: u64 = 60;
const ROUND_COUNT: u64 = 16;

/// Puts, removes and reads keys that are spread over all segments.
fn work<'a>(rig: &Stepped, clock: &'a Clock, worker: u64) -> Recorder<'a> {
    let (mut recorder, mut rng) = (Recorder::new(clock), fastrand::Rng::with_seed(worker));
    for call in 0..CALL_COUNT {
        let (number, value) = (rng.u64(..KEY_COUNT), worker << 32 | call);
        let key = key(mixed(number), number);
        let recorded = recorder.record(|| {
            let call = match rng.u8(..8) {
                0..2 => {
                    rig.put(key, value);
                    Call::Put(value)
                }
                2 => Call::Delete(rig.remove(key).is_some()),
                _ => Call::Get(rig.get(key)),
            };
            Ok::<_, ()>([(number, call)])
        });
        recorded.unwrap();
        thread::yield_now();
    }
    recorder
}

#[test]
fn reads_during_stalled_splits_are_linearizable() {
    let (rig, clock) = (stepped(), Clock::default());
    // This prevents that a split chains instead.
    (KEY_COUNT..600).for_each(|number| _ = rig.put(key(mixed(number), number), number));
    let mut recorders = Vec::new();
    for round in 0..ROUND_COUNT {
        recorders.extend(thread::scope(|scope| {
            let (rig, clock) = (&rig, &clock);
            let workers = [1, 2, 3].map(|worker| scope.spawn(move || work(rig, clock, 4 * round + worker)));
            stepping(|| (0..8).for_each(|_| thread::yield_now()), || rig.split(mixed(round % KEY_COUNT)));
            workers.map(|worker| worker.join().unwrap())
        }));
    }
    assert!(rig.index.split_stats().split_count > ROUND_COUNT / 2);
    let history: History = recorders.into_iter().collect();
    let judged = history.judge().unwrap_or_else(|anomaly| panic!("{anomaly}"));
    assert_eq!(judged, 3 * ROUND_COUNT * CALL_COUNT);
}
