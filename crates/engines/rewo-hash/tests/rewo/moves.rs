//! An insert that moves another item into its other bucket, crashed at every step; and the equal twins that this may leave.

use std::sync::Arc;

use engine::{Check, Depth, Engine};
use engine_rewo_hash::RewoHash;
use index::block_hash::canary;
use parking_lot::Mutex;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{Crashed, Op, Script, Settings, Visitor, explore, hunt};

use crate::splits::{first, key};
use crate::subject::{OfRewoHash, OnSim, PARAMETERS, buckets};

/// Everything up to the first move is its setup.
pub(crate) fn moving() -> Script {
    let last = first("move_count");
    let setup = (0..last).map(|i| Op::Put(key(i), b"a value".to_vec()));
    Script::after(9, setup, [Op::Put(key(last), b"a value".to_vec()), Op::Put(key(last), b"another".to_vec())])
}

fn settings(visitors: Vec<Visitor>) -> Settings {
    Settings { visitors, images_per_step_max: 12, images_per_op_max: 120, nested_images_max: 1, ..Settings::default() }
}

#[test]
fn a_move_survives_every_crash() {
    let visitors = settings(vec![Visitor::Nobody, Visitor::ReaderAlways]);
    let counts =
        explore::<Crashed<OfRewoHash>>(&[moving()], &visitors).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(40, 20, 20), "{counts:?}");
}

#[test]
fn broken_moves_are_caught() {
    for canary in [canary::DELETE_BEFORE_INSERT, canary::DELETE_NOT_ORDERED] {
        let verdict = hunt::<Crashed<OfRewoHash>>(canary, &[moving()], &settings(vec![Visitor::Nobody]));
        assert!(verdict.is_caught(), "{canary:?}: {verdict:?}");
    }
}

/// What a check finds.
pub(crate) fn wrong(store: &OnSim) -> Vec<String> {
    let (mut check, mut wrong) = (Check::new(Depth::Deep), Vec::new());
    while !check.is_done() {
        store.check(&mut check, &mut |damage| wrong.push(damage.what)).unwrap();
    }
    wrong
}

/// Opens what crashes in a move leave, writes over every key at once, and opens that: keys that are wrong, and how many stores
/// had twins.
fn written_over(broken: Option<Canary>) -> (Vec<String>, usize) {
    let (sim, last) = (Sim::new(0, Model::Line), first("move_count"));
    let store = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    (0..last).for_each(|i| store.put(&key(i), b"a value").unwrap());
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim: &Sim, _| noted.lock().extend(sim.images(4, sim.step_count()))));
    store.put(&key(last), b"a value").unwrap();
    sim.unobserve();
    let (mut all, mut twin_count) = (Vec::new(), 0);
    for image in images.lock().iter() {
        let open = || {
            let sim = Sim::from_image(image, Model::Line);
            RewoHash::open(if let Some(broken) = broken { sim.with_canary(broken) } else { sim }, HostDram).unwrap()
        };
        twin_count += usize::from(buckets(&open()).len() as u64 > open().len().unwrap());
        let store = open();
        (0..last).for_each(|i| store.put(&key(i), b"new").unwrap());
        let store = RewoHash::open(store.medium().clone(), HostDram).unwrap();
        all.extend(wrong(&store));
        let is_new = |i: &u32| store.get(&key(*i), &mut |_, value| assert_eq!(value, b"new")).unwrap();
        assert!((0..last).all(|i| is_new(&i)), "a key is lost");
    }
    (all, twin_count)
}

#[test]
fn twins_become_one_when_their_key_is_written() {
    let (wrong, twin_count) = written_over(None);
    assert!(wrong.is_empty() && twin_count > 0, "{twin_count}: {wrong:?}");
    let (wrong, _) = written_over(Some(canary::TWIN_KEPT));
    assert!(!wrong.is_empty(), "the twin was not caught");
}
