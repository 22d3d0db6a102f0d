//! An insert that moves another item into its other bucket, crashed at every step, and the equal slots that this may
//! leave.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use engine::prelude::*;
use engine::{Check, Depth, Error, Progress};
use engine_rewo_hash::RewoHash;
use index::block_hash::canary;
use parking_lot::Mutex;
use pmem::{Canary, MediumError};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{Crashed, Op, Script, Settings, Visitor, catches, survives};

use crate::hooked::{Hooked, hook, unhook};
use crate::splits::{first, key};
use crate::subject::{OfRelieved, OfRewoHash, OnSim, PARAMETERS, buckets};

/// Everything up to the first move is setup.
pub(crate) fn moving() -> Script {
    let last = first("move_count");
    let setup = (0..last).map(|i| Op::Put(key(i), b"a value".to_vec()));
    Script::after(9, setup, [Op::Put(key(last), b"a value".to_vec()), Op::Put(key(last), b"another".to_vec())])
}

fn settings(visitors: Vec<Visitor>) -> Settings {
    Settings { visitors, images_per_step_max: 12, images_per_op_max: 120, nested_images_max: 1, ..Settings::default() }
}

#[test]
fn move_survives_every_crash() {
    let visitors = settings(vec![Visitor::Nobody, Visitor::ReaderAlways]);
    let counts = survives::<Crashed<OfRewoHash>>(&[moving()], &visitors);
    assert!(counts.reach(40, 20, 20), "{counts:?}");
}

#[test]
fn broken_moves_are_caught() {
    for canary in [canary::DELETE_BEFORE_INSERT, canary::DELETE_NOT_ORDERED] {
        catches::<Crashed<OfRewoHash>>(canary, &[moving()], &settings(vec![Visitor::Nobody]));
    }
}

fn crowded(count: u32) -> RewoHash<Sim, HostDram> {
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap().pre_evicting(true);
    (0..count).for_each(|i| store.put(&key(i), b"a value").unwrap());
    store
}

fn relieved_count(store: &RewoHash<Sim, HostDram>) -> u64 {
    while store.step().unwrap() == Progress::More {}
    store.stats().figure("move_count").unwrap() as u64
}

/// Returns a number of keys for which the background finds a full bucket with an item whose other bucket has space.
fn crowd() -> u32 {
    (100..400).step_by(5).find(|&count| relieved_count(&crowded(count)) > 0).expect("a bucket is full")
}

/// The background moves items out of full buckets.
fn relieving() -> Script {
    let crowd = crowd();
    let setup = (0..crowd).map(|i| Op::Put(key(i), b"a value".to_vec()));
    let ops = [Op::Settle, Op::Put(key(0), b"another".to_vec()), Op::Put(key(crowd), vec![1; 7]), Op::Settle];
    Script::after(10, setup, ops)
}

#[test]
fn moves_free_space_ahead_of_inserts() {
    let crowd = crowd();
    let store = crowded(crowd);
    let before = buckets(&store);
    let moved_count = relieved_count(&store);
    let after = buckets(&store);
    let gone_count = before.iter().filter(|at| !after.contains(at)).count() as u64;
    assert!(gone_count > 0 && gone_count == moved_count && before.len() == after.len(), "{gone_count} {moved_count}");
    assert!(wrong(&store).is_empty() && store.len().unwrap() == u64::from(crowd));
    assert!((0..crowd).all(|i| store.get(&key(i), &mut |_, _, value| assert_eq!(value, b"a value")).unwrap()));
    assert_eq!(relieved_count(&store), moved_count, "nothing has come since");
}

fn few(visitor: Visitor) -> Settings {
    Settings { images_per_op_max: 40, ..settings(vec![visitor]) }
}

#[test]
fn move_ahead_of_inserts_survives_every_crash() {
    let script = [relieving()];
    for visitor in [Visitor::Nobody, Visitor::ReaderAlways] {
        let counts = survives::<Crashed<OfRelieved>>(&script, &few(visitor));
        assert!(counts.reach(20, 10, 0), "{counts:?}");
    }
}

#[test]
fn broken_moves_ahead_of_inserts_are_caught() {
    for canary in [canary::DELETE_BEFORE_INSERT, canary::DELETE_NOT_ORDERED] {
        catches::<Crashed<OfRelieved>>(canary, &[relieving()], &few(Visitor::Nobody));
    }
}

/// A store of fixed size refuses a key that finds no slot, keeps the other keys, and accepts the key when there is
/// space again.
#[test]
fn store_of_fixed_size_refuses_and_keeps() {
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap().of_fixed_size();
    let is_taken = |i: &u32| match store.put(&key(*i), b"a value") {
        Ok(()) => true,
        Err(Error::Medium(MediumError::Limit { .. })) => false,
        Err(error) => panic!("{error}"),
    };
    let (taken, refused): (Vec<_>, Vec<_>) = (0..600).partition(is_taken);
    assert!(taken.len() > 350 && !refused.is_empty(), "{}", taken.len());
    assert_eq!(store.stats().figure("segment_count"), Some(1.0));
    assert!(taken.iter().all(|i| store.put(&key(*i), b"another").is_ok()), "updates need no space");
    assert!(taken.iter().all(|i| store.delete(&key(*i)).unwrap()) && is_taken(&refused[0]));
}

/// Returns the damage that a check finds.
pub(crate) fn wrong(store: &OnSim) -> Vec<String> {
    let (mut check, mut wrong) = (Check::new(Depth::Deep), Vec::new());
    while !check.is_done() {
        store.check(&mut check, &mut |damage| wrong.push(damage.what)).unwrap();
    }
    wrong
}

/// Opens the images of crashes in a move, overwrites every key, and opens the result. Returns the damage, and the
/// number of stores that had two equal slots.
fn written_over(broken: Option<Canary>) -> (Vec<String>, usize) {
    let (sim, last) = (Sim::new(0, Model::Line), first("move_count"));
    let store = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    (0..last).for_each(|i| store.put(&key(i), b"a value").unwrap());
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim: &Sim, _| noted.lock().extend(sim.images(4, sim.step_count()))));
    store.put(&key(last), b"a value").unwrap();
    sim.unobserve();
    let (mut all, mut duplicate_count) = (Vec::new(), 0);
    for image in images.lock().iter() {
        let open = || {
            let sim = Sim::from_image(image, Model::Line);
            RewoHash::open(if let Some(broken) = broken { sim.with_canary(broken) } else { sim }, HostDram).unwrap()
        };
        duplicate_count += usize::from(buckets(&open()).len() as u64 > open().len().unwrap());
        let store = open();
        (0..last).for_each(|i| store.put(&key(i), b"new").unwrap());
        let store = RewoHash::open(store.medium().clone(), HostDram).unwrap();
        all.extend(wrong(&store));
        let is_new = |i: &u32| store.get(&key(*i), &mut |_, _, value| assert_eq!(value, b"new")).unwrap();
        assert!((0..last).all(|i| is_new(&i)), "a key is lost");
    }
    (all, duplicate_count)
}

#[test]
fn writing_a_key_removes_its_duplicate() {
    let (wrong, duplicate_count) = written_over(None);
    assert!(wrong.is_empty() && duplicate_count > 0, "{duplicate_count}: {wrong:?}");
    let (wrong, _) = written_over(Some(canary::DUPLICATE_KEPT));
    assert!(!wrong.is_empty(), "the broken variant was not caught");
}

/// The background neither walks nor counts keys if no bucket has become full.
#[test]
fn step_with_nothing_to_do_reads_nothing() {
    let store =
        RewoHash::format(Hooked::on(Sim::new(0, Model::Line)), HostDram, &PARAMETERS).unwrap().pre_evicting(true);
    while store.step().unwrap() == Progress::More {}
    for i in 0..20 {
        store.put(&key(i), b"a value").unwrap();
        let read_count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&read_count);
        hook(move |_| counted.set(counted.get() + 1));
        assert_eq!(store.step().unwrap(), Progress::Idle);
        unhook();
        assert_eq!(read_count.get(), 0, "{i}");
    }
}
