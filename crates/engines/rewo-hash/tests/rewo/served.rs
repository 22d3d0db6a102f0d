//! The engine with threads that write the copies of its cached table: compared with a map, crashed, under contention;
//! and such a thread running between any two accesses of a writer.

use std::cell::Cell;
use std::rc::Rc;

use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use index::cached_table::canary;
use parking_lot::Mutex;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{
    Contention, Crashed, Extent, Paired, Restless, Script, Settings, Shape, Visitor, answers_like_a_map, catches,
    contend, crowd, restless, survives,
};

use crate::cached::{OnHooked, before_each_access, got, held, hooked};
use crate::crash::{batch, refills, shape};
use crate::hooked::{Hooked, failing, reading_only};
use crate::subject::{OfServed, PARAMETERS};

#[test]
fn it_answers_like_a_map() {
    answers_like_a_map::<OfServed>(Shape { batches: true, conditions: true, ..shape(500) }, 0..2);
}

/// Stores with copy threads are crashed one at a time. Writers that are stopped in one store hold back the epoch, which
/// the whole process shares, and each check of the epoch interrupts the processors on which copy threads poll for
/// requests.
static CRASHING: Mutex<()> = Mutex::new(());

fn one_by_one() -> Settings {
    Settings { thread_count: 1, ..Settings::of_engine() }
}

/// The threads only write copies: a crash leaves the same as without them. So only a whole exploration has a
/// second writer, for which all others would wait.
#[test]
fn it_survives_every_crash() {
    let _alone = CRASHING.lock();
    let is_asked_for = |visitor: &Visitor| Extent::chosen() == Extent::Whole || *visitor != Visitor::WriterAlways;
    let visitors = Settings::of_engine().visitors.into_iter().filter(is_asked_for).collect();
    let settings = Settings { visitors, images_per_op_max: 3, nested_images_max: 0, ..one_by_one() };
    let scripts = [refills(), batch(), Script::expiring()];
    let counts = survives::<Crashed<OfServed>>(&scripts, &settings);
    assert!(counts.reach(40, 0, 40), "{counts:?}");
}

#[test]
fn histories_under_contention_are_linearizable() {
    crowd::histories_are_linearizable::<OfServed<Restless>>(false);
}

#[test]
fn histories_over_two_keys_are_linearizable() {
    let store = RewoHash::format(restless(), HostDram, &PARAMETERS).unwrap();
    let store = store.caching(1 << 20, HostDram).unwrap().copying_by(2).unwrap();
    let judged = contend(&Paired(&store), &Contention { clear_every: 100, ..Contention::default() });
    assert!(judged.unwrap_or_else(|disorder| panic!("{disorder}")) >= 1200);
    let figure = |name| store.stats().figure(name).unwrap();
    assert_eq!(figure("cache_thread_count"), 2.0);
    // Those were batches, whose copies their writers write.
    let handed_over = || figure("cache_served_count") + figure("cache_taken_back_count");
    assert_eq!(handed_over(), 0.0);
    (0..100).for_each(|i| store.put(b"k", &[i; 9]).unwrap());
    assert_eq!(handed_over(), 100.0);
}

/// Writes the handed-over copies before each of this thread's accesses while `during` runs. Returns their number.
fn serving(store: &Rc<OnHooked>, then: impl Fn() + 'static, during: impl FnOnce()) -> u64 {
    let table = || store.cached_table().expect("the store has a table");
    table().accept_handoffs();
    let before = table().stats().served_count;
    let server = Rc::clone(store);
    let serve = move || {
        server.cached_table().expect("the store has a table").serve();
        then();
    };
    before_each_access(serve, during);
    table().stats().served_count - before
}

/// Returns true if a reader during a put, whose copy another thread writes, gets the old item after the new one.
fn detects_an_older_item(broken: Option<Canary>) -> bool {
    let store = hooked(broken);
    let is_older = Rc::new(Cell::new(false));
    let (reader, reported) = (Rc::clone(&store), Rc::clone(&is_older));
    let read = move || {
        if held(&reader) == b"new" && got(&reader) == b"old" {
            reported.set(true);
        }
    };
    let served = serving(&store, read, || store.put(b"k", b"new").unwrap());
    assert!(broken.is_some() || served == 1);
    is_older.get() || got(&store) != b"new"
}

#[test]
fn reader_during_put_gets_no_older_item() {
    assert!(!detects_an_older_item(None));
    assert!(detects_an_older_item(Some(canary::COPY_HIDDEN_LATE)));
}

/// A copy that another thread has written is shown only if its item is durable.
#[test]
fn put_that_failed_shows_no_copy() {
    let store = hooked(None);
    let hits = || store.stats().figure("cache_hit_count").unwrap();
    let before = hits();
    assert_eq!(serving(&store, || {}, || assert!(failing(|| store.put(b"k", b"new")).is_err())), 1);
    assert_eq!((got(&store), hits()), (b"new".to_vec(), before), "the value is read from the region");
    assert_eq!(serving(&store, || {}, || store.put(b"k", b"newer").unwrap()), 1);
    assert_eq!((got(&store), hits()), (b"newer".to_vec(), before + 1.0));
}

/// A put that finds its segment full begins again; the copy written for it before is not shown.
#[test]
fn puts_that_split_are_served_too() {
    let sim = Sim::new(0, Model::Span);
    let store = RewoHash::format(Hooked::on(sim), HostDram, &PARAMETERS).unwrap();
    let store = Rc::new(store.caching(1 << 20, HostDram).unwrap());
    let key = |i: u32| i.to_be_bytes();
    let served = serving(&store, || {}, || (0..2000).for_each(|i| store.put(&key(i), &[i as u8; 9]).unwrap()));
    assert!(store.stats().figure("split_count") > Some(2.0) && served >= 2000, "{served}");
    for i in 0..2000 {
        let mut shown = None;
        store.get(&key(i), &mut |_, _, value| shown = Some(value.to_vec())).unwrap();
        assert_eq!(shown, Some(vec![i as u8; 9]), "{i}");
    }
    assert_eq!(store.stats().figure("cache_miss_count"), Some(0.0), "{:?}", store.stats());
}

#[test]
fn crashes_catch_copies_published_early() {
    let _alone = CRASHING.lock();
    catches::<Crashed<OfServed>>(canary::COPY_SHOWN_EARLY, &[refills()], &one_by_one());
}

#[test]
fn read_only_cache_has_no_threads() {
    let made = || RewoHash::format(Hooked::on(Sim::new(0, Model::Span)), HostDram, &PARAMETERS).unwrap();
    let threads = |store: &OnHooked| store.stats().figure("cache_thread_count");
    assert_eq!(threads(&made().copying_by(2).unwrap()), None);
    let store = made().caching(1 << 20, HostDram).unwrap();
    assert_eq!(threads(&reading_only(|| store.copying_by(2).unwrap())), None);
}
