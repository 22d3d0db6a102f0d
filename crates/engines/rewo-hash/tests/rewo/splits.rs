//! Segments that split while they are crashed, and while other threads read and write.

use pmem_sim::{Model, Sim};
use testkit::{Crashed, Op, Script, Settings, Visitor, catches, survives};

use engine::prelude::*;
use engine::{Check, Depth};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use index::block_hash::canary;
use pmem_os::HostDram;

use crate::subject::{OfRewoHash, PARAMETERS};

pub(crate) fn key(i: u32) -> Vec<u8> {
    format!("key {i:05}").into_bytes()
}

/// Returns how many of the keys above, in order, a store of one segment takes before `figure` is counted.
pub(crate) fn first(figure: &str) -> u32 {
    first_of(figure, &PARAMETERS)
}

/// Returns the same for stores with these parameters.
pub(crate) fn first_of(figure: &str, parameters: &Parameters) -> u32 {
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, parameters).unwrap();
    let is_counted = |store: &RewoHash<_, _>| Engine::stats(store).figure(figure) == Some(1.0);
    (0..441)
        .find(|&i| {
            store.put(&key(i), b"a value").unwrap();
            is_counted(&store)
        })
        .expect("more keys than a segment has slots")
}

/// Everything up to the split is setup.
pub(crate) fn splitting() -> Script {
    let last = first("split_count");
    let setup = (0..last).map(|i| Op::Put(key(i), b"a value".to_vec()));
    Script::after(9, setup, [Op::Put(key(last), b"a value".to_vec()), Op::Delete(key(3)), Op::Put(key(4), vec![1; 40])])
}

fn settings() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAfter(30)];
    Settings { visitors, images_per_step_max: 6, images_per_op_max: 60, nested_images_max: 1, ..Settings::default() }
}

#[test]
fn split_survives_every_crash() {
    let counts = survives::<Crashed<OfRewoHash>>(&[splitting()], &settings());
    assert!(counts.reach(60, 20, 1), "{counts:?}");
}

#[test]
fn split_before_its_segments_is_caught() {
    let many = Settings {
        models: vec![Model::Line],
        visitors: vec![Visitor::Nobody],
        images_per_step_max: 24,
        images_per_op_max: 500,
        nested_images_max: 0,
        ..settings()
    };
    catches::<Crashed<OfRewoHash>>(canary::BLOCK_SPLIT_BEFORE_SEGMENTS, &[splitting()], &many);
}

#[test]
fn store_grows_and_keeps_everything() {
    let store = RewoHash::format(Sim::new(0, Model::Span), HostDram, &PARAMETERS).unwrap();
    let value = |i: u32| vec![i as u8; (i % 40) as usize];
    for i in 0..4000 {
        store.put(&key(i), &value(i)).unwrap();
    }
    (0..4000).step_by(3).for_each(|i| assert!(store.delete(&key(i)).unwrap()));
    let is_whole = |store: &RewoHash<_, _>| {
        for i in 0..4000 {
            let mut seen = None;
            assert_eq!(store.get(&key(i), &mut |_, _, found| seen = Some(found.to_vec())).unwrap(), i % 3 != 0);
            assert_eq!(seen, (i % 3 != 0).then(|| value(i)));
        }
        let mut check = Check::new(Depth::Deep);
        while !check.is_done() {
            store.check(&mut check, &mut |damage| panic!("{damage:?}")).unwrap();
        }
        assert_eq!((check.item_count(), store.len().unwrap()), (2666, 2666));
    };
    is_whole(&store);
    let load = store.stats().figure("load").unwrap();
    assert!((0.2..0.8).contains(&load), "{load}");
    let medium = store.medium().clone();
    drop(store);
    is_whole(&RewoHash::open(medium, HostDram).unwrap());
}
