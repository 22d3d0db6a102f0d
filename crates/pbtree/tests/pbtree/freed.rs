//! Nothing is freed that a crash might restore.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pmem::Canary;
use pmem_sim::{Image, Model, Sim};
use testkit::{Operations, Subject};

use crate::subject::Crashed;

const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];

/// Returns true if a crash, at any step, leaves a key with a value whose place was free when the power failed.
fn something_named_is_free(canary: Option<Canary>) -> bool {
    let sim = canary.into_iter().fold(Sim::new(0, Model::Line), Sim::with_canary);
    let store = Arc::new(Crashed::<false>::format(sim.clone()).unwrap());
    KEYS.iter().for_each(|key| store.put(key, b"the first").unwrap());
    let (found, looked_at) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (live, reported, count) = (Arc::clone(&store), Arc::clone(&found), Arc::clone(&looked_at));
    let look = Mutex::new(move |image: &Image| {
        let left = Crashed::<false>::open(Sim::from_image(image, Model::Line)).unwrap();
        for place in KEYS.iter().filter_map(|key| left.0.get(key, |value| value.place).unwrap()) {
            reported.fetch_or(live.0.heap().table().is_free(place), Ordering::Relaxed);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    sim.observe(Box::new(move |sim, _| sim.images(16, 1).iter().for_each(|image| look.lock().unwrap()(image))));
    store.put(b"b", b"the second").unwrap();
    store.delete(b"a").unwrap();
    store.put(b"a", b"the third").unwrap();
    store.clear().unwrap();
    sim.unobserve();
    assert!(looked_at.load(Ordering::Relaxed) > 100);
    found.load(Ordering::Relaxed)
}

#[test]
fn nothing_recoverable_is_freed() {
    assert!(!something_named_is_free(None));
    assert!(something_named_is_free(Some(pbtree::canary::FREE_BEFORE_UNLINK)));
}
