//! Stamps never repeat, whatever a crash loses.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pmem::Canary;
use pmem_sim::{Model, Sim};
use testkit::{Operations, Subject};

use crate::subject::Crashed;

fn stamp(store: &Crashed) -> u64 {
    store.put(b"key", b"value").unwrap();
    store.0.get(b"key", |value| value.stamp).unwrap().expect("it was just put")
}

/// Returns true if a store that crashed, at any step, gives a stamp that a reader had already read.
fn a_stamp_returns(canary: Option<Canary>) -> bool {
    let sim = canary.into_iter().fold(Sim::new(0, Model::Line), Sim::with_canary);
    let store = Crashed::<false>::format(sim.clone()).unwrap();
    let (read, crashes) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(Mutex::new(Vec::new())));
    let (known, noted) = (Arc::clone(&read), Arc::clone(&crashes));
    sim.observe(Box::new(move |sim, _| {
        let known: BTreeSet<u64> = known.lock().unwrap().clone();
        noted.lock().unwrap().extend(sim.images(16, 1).into_iter().map(|image| (image, known.clone())));
    }));
    for _ in 0..3 {
        let stamp = stamp(&store);
        assert!(read.lock().unwrap().insert(stamp), "a stamp came twice without a crash");
    }
    sim.unobserve();
    let crashes = crashes.lock().unwrap();
    assert!(crashes.len() > 50, "{} images show nothing", crashes.len());
    crashes.iter().any(|(image, known)| {
        let store = Crashed::<false>::open(Sim::from_image(image, Model::Line)).unwrap();
        known.contains(&stamp(&store))
    })
}

#[test]
fn stamps_never_return() {
    assert!(!a_stamp_returns(None));
    assert!(a_stamp_returns(Some(pbtree::canary::STAMP_BLOCK_NOT_FLUSHED)));
}
