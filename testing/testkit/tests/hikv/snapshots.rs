//! Snapshots of a store that is written to and crashed: they do not change while the store lives, and leave nothing
//! behind.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;

use engine::prelude::*;
use engine::{Moment, Progress};
use engine_hikv::HiKv;
use heap::Class;
use heap::Parameters;
use heap::layout::SNAPSHOT_EPOCH;
use items::layout::HEADER_BYTES;
use pmem::{Bytes, Canary, Medium};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim, StepKind};
use testkit::{Op, Problem, Script, Settings, Shape, Visitor};

use crate::scripts::{delete, put};
use crate::subject::{Crashed, InOrder, REGION_BYTES};
use crate::{caught, passes, settings};

/// Larger than the largest size class: an extent.
const EXTENT_BYTES: usize = 300_000;

/// Keys are replaced, removed and put again under one and two snapshots; nothing of a snapshot survives a restart.
fn replaced_and_removed() -> Script {
    let ops = [
        put("a", "3"),
        delete("b"),
        Op::Snapshot,
        put("a", "5"),
        put("b", "7"),
        Op::Release,
        delete("a"),
        Op::Release,
        Op::Snapshot,
        put("b", "8"),
        Op::Reopen,
        Op::Snapshot,
        put("b", "9"),
    ];
    Script::after(70, [put("a", "1"), put("b", [2; 100]), Op::Snapshot], ops)
}

/// The same with an ordered index, for some keys before the snapshot and for some after it.
fn in_order() -> Script {
    let ops = [
        put("a", "3"),
        delete("b"),
        Op::Scan,
        put("b", "5"),
        Op::Snapshot,
        delete("c"),
        Op::Scan,
        Op::Release,
        Op::Clear,
        put("d", "7"),
        Op::Snapshot,
        put("d", "8"),
        Op::Scan,
    ];
    Script::after(71, [put("b", "1"), put("c", "2"), Op::Scan, Op::Snapshot], ops)
}

/// A kept extent is not reused before its snapshot is released.
fn extents() -> Script {
    let large = |fill: u8| vec![fill; EXTENT_BYTES];
    let ops = [put("a", large(2)), put("b", large(3)), Op::Release, put("b", large(4))];
    Script::after(72, [put("a", large(1)), Op::Snapshot], ops)
}

fn mixed(seeds: Range<u64>, op_count: usize) -> impl Iterator<Item = Script> {
    let shape = Shape {
        multi_puts: true,
        swaps: true,
        batches: true,
        scans: true,
        snapshots: true,
        clears: true,
        reopens: true,
        ..Shape::small(op_count)
    };
    seeds.map(move |seed| Script::seeded(seed, &shape))
}

/// Settings in which the kind of the visitor matters more than its exact step.
fn sampled() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::Deleter, Visitor::WriterAfter(4)];
    Settings { visitors, images_per_step_max: 8, nested_images_max: 2, ..settings() }
}

#[test]
fn snapshots_stay_and_leave_nothing() {
    let scripts: Vec<_> = [replaced_and_removed(), extents()].into_iter().chain(mixed(73..74, 12)).collect();
    let counts = passes::<Crashed>(&scripts, &sampled());
    assert!(counts.reach(300, 0, 100), "{counts:?}");
}

#[test]
fn snapshots_stay_in_order() {
    passes::<InOrder>(&[in_order()], &sampled());
}

#[test]
#[ignore = "many minutes"]
fn snapshots_stay_for_long() {
    let scripts: Vec<_> = [replaced_and_removed(), in_order()].into_iter().chain(mixed(80..100, 20)).collect();
    passes::<Crashed>(&scripts, &settings());
    passes::<InOrder>(&scripts, &settings());
}

#[test]
fn late_kept_version_is_caught() {
    let violation = caught(engine_hikv::canary::KEPT_AFTER_PUBLISH, Model::Line, &[replaced_and_removed()], sampled());
    assert!(matches!(violation.problem, Problem::Snapshot(_)), "{violation}");
}

#[test]
fn epoch_undone_by_crash_is_caught() {
    let violation = caught(heap::canary::EPOCH_NOT_FLUSHED, Model::Line, &[replaced_and_removed()], sampled());
    // The store's own check finds the item, or a snapshot of the recovered store misses it.
    let is_by_itself = match &violation.problem {
        Problem::Damage(damage) => damage.iter().all(|found| found.contains("a later snapshot epoch")),
        problem => matches!(problem, Problem::Snapshot(_)),
    };
    assert!(is_by_itself, "caught by another fault: {violation}");
}

type Store = HiKv<Sim, HostDram>;

fn store(canary: Option<Canary>) -> Arc<Store> {
    let sim = Sim::new(REGION_BYTES, Model::Line);
    let sim = canary.map_or(sim.clone(), |canary| sim.with_canary(canary));
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
    let store = HiKv::format(sim, HostDram, &parameters).unwrap();
    store.put(b"key", b"old").unwrap();
    Arc::new(store)
}

fn get_at(store: &Store, at: Moment) -> Vec<u8> {
    let mut copy = Vec::new();
    assert!(store.get_at(at, b"key", &mut |_, _, value| copy = value.to_vec()).unwrap());
    copy
}

/// The sweep after an unclean end skips items that were kept before the sweep reached their slots, and does not free
/// these items.
#[test]
fn the_sweep_leaves_what_is_kept() {
    let store = store(None);
    let medium = store.medium().clone();
    drop(store);
    let store = HiKv::open(medium, HostDram).unwrap();
    assert!(!store.stats().swept);
    let at = SnapshotEngine::take_snapshot(&store).unwrap();
    store.put(b"key", b"new").unwrap();
    while store.step().unwrap() == Progress::More {}
    assert!(store.stats().swept);
    assert_eq!(get_at(&store, at), b"old");
    let kept_bytes = store.stats().live_bytes;
    SnapshotEngine::release_snapshot(&store, at);
    while store.stats().garbage_count > 0 {
        store.run_idle_maintenance();
    }
    let slot_bytes = Class::for_bytes((HEADER_BYTES + b"key".len() + b"old".len()) as u64).map(Class::bytes);
    assert_eq!(Some(kept_bytes - store.stats().live_bytes), slot_bytes);
}

/// A source that takes a snapshot when it is read.
struct Source<'a>(&'a Store, Option<Moment>);

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = Some(self.0.take_snapshot().map_err(io::Error::other)?);
        into.fill(b'n');
        Ok(into.len())
    }
}

/// Returns the value in a snapshot that was taken after a writer stamped its item and before it searched for the key:
/// at that moment, and after the item was published.
fn taken_between_stamp_and_lock(canary: Option<Canary>) -> [Vec<u8>; 2] {
    let store = store(canary);
    let mut source = Source(&store, None);
    store.put_from(b"key", 3, &mut source).unwrap();
    let at = source.1.expect("the source was read");
    [b"old".to_vec(), get_at(&store, at)]
}

#[test]
fn unchecked_stamp_is_caught() {
    let [early, late] = taken_between_stamp_and_lock(None);
    assert_eq!(early, late);
    let [early, late] = taken_between_stamp_and_lock(Some(engine_hikv::canary::STALE_STAMP));
    assert_ne!(early, late, "the broken variant was not caught");
}

/// Returns the value in a snapshot that is taken while a writer holds its bucket and has not published: at that moment,
/// and after publishing.
///
/// The writer stops there until the other thread has come as far as it can: the sound store has advanced the epoch and
/// waits for the writer; the broken variant has read the key.
fn taken_under_the_lock(canary: Option<Canary>) -> [Vec<u8>; 2] {
    let store = store(canary);
    let (acknowledged, has_read) = mpsc::channel();
    let (taking, mut taker) = (Arc::clone(&store), None);
    let (joined, join) = mpsc::channel();
    store.medium().observe(Box::new(move |sim, kind| {
        if kind != StepKind::Order || taker.is_some() {
            return;
        }
        let (taking, acknowledged) = (Arc::clone(&taking), acknowledged.clone());
        taker = Some(());
        let handle = thread::spawn(move || {
            let at = taking.take_snapshot().unwrap();
            let early = get_at(&taking, at);
            // In the sound store the receiver is gone, because this runs after the writer has ended.
            let _ = acknowledged.send(());
            (at, early)
        });
        joined.send(handle).unwrap();
        if sim.breaks(engine_hikv::canary::SNAPSHOT_BEFORE_WRITERS) {
            has_read.recv().unwrap();
        }
        while sim.load(SNAPSHOT_EPOCH, Ordering::Acquire) == 0 {
            thread::yield_now();
        }
    }));
    store.put(b"key", b"new").unwrap();
    store.medium().unobserve();
    let (at, early) = join.recv().unwrap().join().unwrap();
    [early, get_at(&store, at)]
}

#[test]
fn snapshot_not_awaiting_writers_is_caught() {
    let [early, late] = taken_under_the_lock(None);
    assert_eq!(early, late);
    let [early, late] = taken_under_the_lock(Some(engine_hikv::canary::SNAPSHOT_BEFORE_WRITERS));
    assert_ne!(early, late, "the broken variant was not caught");
}
