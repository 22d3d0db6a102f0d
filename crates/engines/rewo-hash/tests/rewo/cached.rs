//! The engine with its cached table: compared with a map, crashed, under contention, and its broken variants.

use std::cell::Cell;
use std::fs;
use std::rc::Rc;

use engine::prelude::*;
use engine::{BatchOp, Error, Progress, Verify};
use engine_rewo_hash::RewoHash;
use index::cached_table::canary;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{
    Crashed, OnDisk, Op, Restless, Script, Settings, Shape, Visitor, answers_like_a_map, catches, crowd, restless,
    survives,
};

use crate::crash::{batch, refills, shape};
use crate::damaged::flip_value;
use crate::hooked::{Hooked, deferring, failing, hook, unhook};
use crate::subject::{OfCached, OnSim, PARAMETERS};

fn store() -> OnSim {
    RewoHash::format(Sim::new(0, Model::Span), HostDram, &PARAMETERS).unwrap().caching(1 << 20, HostDram).unwrap()
}

fn restless_store() -> RewoHash<Restless, HostDram> {
    RewoHash::format(restless(), HostDram, &PARAMETERS).unwrap().caching(1 << 20, HostDram).unwrap()
}

fn value(store: &OnSim, key: &[u8]) -> Option<Vec<u8>> {
    let mut shown = None;
    store.get(key, &mut |_, _, value| shown = Some(value.to_vec())).unwrap();
    shown
}

/// Returns the number of lookups so far that had to read the region.
fn misses(store: &OnSim) -> f64 {
    store.stats().figure("cache_miss_count").unwrap()
}

#[test]
fn it_answers_like_a_map() {
    answers_like_a_map::<OfCached>(Shape { batches: true, conditions: true, ..shape(500) }, 0..4);
}

/// The table of a new store has all items, so no read reaches the region, whatever is added, deleted, moved and split.
#[test]
fn new_store_reads_skip_region() {
    let store = store();
    let key = |i: u32| i.to_be_bytes();
    (0..2000).for_each(|i| store.put(&key(i), &[i as u8; 15]).unwrap());
    (0..2000).step_by(3).for_each(|i| assert!(store.delete(&key(i)).unwrap()));
    let puts: Vec<_> = (100..200).map(|i| (key(i), [7; 40])).collect();
    store.write_batch(&puts.iter().map(|(key, value)| BatchOp::Put { key, value }).collect::<Vec<_>>()).unwrap();
    assert!(store.stats().figure("split_count") > Some(2.0));
    for i in 0..2500u32 {
        let held = match i {
            100..200 => Some(vec![7; 40]),
            _ if i < 2000 && !i.is_multiple_of(3) => Some(vec![i as u8; 15]),
            _ => None,
        };
        assert_eq!(value(&store, &key(i)), held, "{i}");
    }
    assert_eq!(misses(&store), 0.0, "{:?}", store.stats());
    store.clear().unwrap();
    assert!((0..2500u32).all(|i| value(&store, &key(i)).is_none()));
    assert_eq!((misses(&store), store.stats().figure("cache_hit_ratio")), (0.0, Some(1.0)));
}

/// The background adds all items of an opened store.
#[test]
fn an_opened_stores_table_is_filled() {
    let sim = Sim::new(0, Model::Span);
    let first = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    let key = |i: u32| i.to_be_bytes();
    (0..500).for_each(|i| first.put(&key(i), &[i as u8; 30]).unwrap());
    drop(first);
    let store = RewoHash::open(sim, HostDram).unwrap().caching(1 << 20, HostDram).unwrap();
    assert_eq!(value(&store, &key(600)), None);
    assert_eq!(misses(&store), 1.0);
    while store.step().unwrap() == Progress::More {}
    let missed = misses(&store);
    assert!((0..500).all(|i| value(&store, &key(i)) == Some(vec![i as u8; 30])));
    assert!((500..900).all(|i| value(&store, &key(i)).is_none()));
    assert_eq!(misses(&store), missed);
}

/// An item that the background cannot add is still present: its key is not absent.
#[test]
fn filled_cache_keeps_damage_an_error() {
    for len_bytes in [40, 10] {
        let sim = Sim::new(0, Model::Span);
        let first = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
        first.put(b"whole", b"value").unwrap();
        first.put(b"damaged", &vec![0xA5; len_bytes]).unwrap();
        drop(first);
        flip_value(&sim, &vec![0xA5; len_bytes]);
        let store =
            RewoHash::open(sim, HostDram).unwrap().verifying(Verify::Values).caching(1 << 20, HostDram).unwrap();
        while store.step().unwrap() == Progress::More {}
        let damaged = store.get(b"damaged", &mut |_, _, _| {});
        assert!(matches!(damaged, Err(Error::Corrupt { .. })), "{len_bytes}: {damaged:?}");
        assert_eq!((value(&store, b"whole"), value(&store, b"none")), (Some(b"value".to_vec()), None));
    }
}

/// Reads of a key that does not change read the region once.
#[test]
fn read_brings_its_item_in() {
    let sim = Sim::new(0, Model::Span);
    RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap().put(b"k", &[1; 100]).unwrap();
    let store = RewoHash::open(sim, HostDram).unwrap().caching(1 << 20, HostDram).unwrap();
    (0..5).for_each(|_| assert_eq!(value(&store, b"k"), Some(vec![1; 100])));
    assert_eq!(misses(&store), 1.0);
    store.expire(b"k", engine::Expiry::at_ms(1)).unwrap();
    assert_eq!(value(&store, b"k"), None);
}

#[test]
fn it_survives_every_crash() {
    let batches = Shape { batches: true, conditions: true, ..shape(6) };
    let settings = Settings { images_per_op_max: 3, nested_images_max: 0, ..Settings::of_engine() };
    let counts = survives::<Crashed<OfCached>>(&[Script::seeded(4, &batches), Script::expiring()], &settings);
    assert!(counts.reach(40, 40, 40), "{counts:?}");
}

#[test]
fn it_survives_on_a_disk() {
    let settings = Settings { images_per_step_max: 2, images_per_op_max: 4, ..on_disk() };
    let scripts = [Script::seeded(7, &shape(8))];
    let counts = survives::<Crashed<OfCached<OnDisk>>>(&scripts, &settings);
    assert!(counts.reach(10, 10, 1), "{counts:?}");
}

fn on_disk() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4), Visitor::Deleter];
    Settings { models: vec![Model::Disk], visitors, nested_images_max: 0, ..Settings::of_engine() }
}

#[test]
fn histories_under_contention_are_linearizable() {
    crowd::histories_are_linearizable::<OfCached<Restless>>(false);
}

/// Pairs of keys that conditions keep equal behave like registers, as single keys do.
#[test]
fn histories_over_two_keys_are_linearizable() {
    crowd::pairs_are_linearizable(|_| restless_store());
}

pub(crate) type OnHooked = RewoHash<Hooked, HostDram>;

/// Returns a store, or a broken variant, whose table has the key's item.
pub(crate) fn hooked(broken: Option<Canary>) -> Rc<OnHooked> {
    let sim = Sim::new(0, Model::Span);
    let first = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    first.put(b"k", b"old").unwrap();
    drop(first);
    let sim = broken.map_or(sim.clone(), |canary| sim.with_canary(canary));
    let store = Rc::new(RewoHash::open(Hooked::on(sim), HostDram).unwrap().caching(1 << 20, HostDram).unwrap());
    (0..2).for_each(|_| assert_eq!(got(&store), b"old"));
    assert_eq!(store.stats().figure("cache_hit_count"), Some(1.0));
    store
}

pub(crate) fn got(store: &OnHooked) -> Vec<u8> {
    let mut shown = Vec::new();
    store.get(b"k", &mut |_, _, value| shown = value.to_vec()).unwrap();
    shown
}

/// Returns the key's value as a conditional write sees it, which never reads the table.
pub(crate) fn held(store: &OnHooked) -> Vec<u8> {
    let mut held = Vec::new();
    let mut see = |seen: Option<engine::CurrentItem<'_>>| {
        held = seen.map(|seen| seen.value.to_vec()).unwrap_or_default();
        engine::Decision::Keep
    };
    store.update(b"k", &mut see).unwrap();
    held
}

/// While other threads defer durability, the background skips items of an opened store, because they may be lost.
#[test]
fn undurable_items_are_not_cached_by_background() {
    let sim = Sim::new(0, Model::Span);
    RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap().put(b"k", b"old").unwrap();
    let store = RewoHash::open(Hooked::on(sim), HostDram).unwrap().caching(1 << 20, HostDram).unwrap();
    deferring(|| while store.step().unwrap() == Progress::More {});
    (0..3).for_each(|_| assert_eq!(got(&store), b"old"));
    assert_eq!(store.stats().figure("cache_miss_count"), Some(1.0));
}

/// Runs `during`, and `work` before each access of this thread except those of `work` itself.
pub(crate) fn before_each_access(work: impl Fn() + 'static, during: impl FnOnce()) {
    let is_inside = Cell::new(false);
    hook(move |_| {
        if !is_inside.replace(true) {
            work();
            is_inside.set(false);
        }
    });
    during();
    unhook();
}

/// Returns true if a reader during a put gets the old item after the new one.
fn detects_an_older_item(broken: Option<Canary>) -> bool {
    let store = hooked(broken);
    let is_older = Rc::new(Cell::new(false));
    let (reader, reported) = (Rc::clone(&store), Rc::clone(&is_older));
    let read = move || {
        if held(&reader) == b"new" && got(&reader) == b"old" {
            reported.set(true);
        }
    };
    before_each_access(read, || store.put(b"k", b"new").unwrap());
    is_older.get() || got(&store) != b"new"
}

#[test]
fn reader_during_put_gets_no_older_item() {
    assert!(!detects_an_older_item(None));
    assert!(detects_an_older_item(Some(canary::COPY_HIDDEN_LATE)));
}

/// No reader waits for a failed put, and its key is cached again.
#[test]
fn put_that_failed_is_pending_no_more() {
    let store = hooked(None);
    assert!(failing(|| store.put(b"k", b"new")).is_err());
    (0..2).for_each(|_| assert_eq!(got(&store), b"new"));
    assert_eq!(store.stats().figure("cache_hit_count"), Some(2.0));
}

/// A read of the region repeats as often as a write of the key came in between, with a table and without one. If every
/// access is followed by a write, it ends when the writes end.
#[test]
fn read_ends_with_writes_of_its_key() {
    for limit_bytes in [0, 1 << 20] {
        let store = RewoHash::format(Hooked::on(Sim::new(0, Model::Span)), HostDram, &PARAMETERS).unwrap();
        let store = Rc::new(store.caching(limit_bytes, HostDram).unwrap());
        assert!(failing(|| store.put(b"k", b"new")).is_err());
        let (writer, put_count) = (Rc::clone(&store), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&put_count);
        let put = move || {
            if counted.replace(counted.get() + 1) < 100 {
                writer.put(b"k", &[1; 5000]).unwrap();
            }
        };
        before_each_access(put, || assert_eq!(got(&store), [1; 5000]));
        assert!(put_count.get() > 100);
    }
}

#[test]
fn crashes_show_broken_variants() {
    let opened = Script::fresh(3, [Op::Put("a".into(), vec![1; 5]), Op::Reopen, Op::Settle]);
    let cleared = Script::fresh(4, [Op::Put("a".into(), vec![1; 5]), Op::Clear]);
    let cases = [
        (canary::COPY_SHOWN_EARLY, refills()),
        (canary::UNFILLED_TRUSTED, opened),
        (canary::BATCH_HIDES_NOTHING, batch()),
        (canary::CLEAR_HIDES_NOTHING, cleared),
    ];
    for (canary, script) in cases {
        catches::<Crashed<OfCached>>(canary, &[script], &Settings::of_engine());
    }
}

fn resident_pages() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A large table takes memory only for its used part.
#[test]
fn unused_cache_takes_no_memory() {
    let store = RewoHash::format(Sim::new(0, Model::Span), HostDram, &PARAMETERS).unwrap();
    let before = resident_pages();
    let store = store.caching(1 << 30, HostDram).unwrap();
    store.put(b"key", b"value").unwrap();
    let taken = resident_pages().saturating_sub(before);
    assert!(taken < (1 << 30) / 4096 / 4, "{taken} pages");
}
