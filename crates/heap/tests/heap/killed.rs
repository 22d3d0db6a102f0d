//! A process is killed at every step of a rewrite of the superblock. The next process opens the region, and at every
//! step of that the power fails, which loses everything that neither has made durable.

use std::sync::{Arc, Mutex};

use heap::{EngineNumber, FEATURE_EXPIRY, Heap};
use pmem::Canary;
use pmem_sim::{Image, Model, Sim};

use crate::memory::{Host, PARAMETERS};

pub(crate) const IMAGE_COUNT_MAX: usize = 64;

/// The result of `images` at each step of `act` on `sim`.
pub(crate) fn at_steps(sim: &Sim, images: fn(&Sim) -> Vec<Image>, act: impl FnOnce()) -> Vec<Image> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&found);
    sim.observe(Box::new(move |sim, _| into.lock().unwrap().extend(images(sim))));
    act();
    sim.unobserve();
    std::mem::take(&mut *found.lock().unwrap())
}

fn variant(sim: Sim, canary: Option<Canary>) -> Sim {
    canary.into_iter().fold(sim, Sim::with_canary)
}

/// Returns the number of images, and the number of those that do not open.
fn refused_after_a_kill(canary: Option<Canary>) -> (usize, usize) {
    let sim = Sim::new(0, Model::Line);
    let heap = Heap::format(&sim, EngineNumber::HIKV, &PARAMETERS, Host::default()).unwrap();
    heap.region().finish_format(&sim).unwrap();
    let killed =
        at_steps(&sim, |sim| sim.killed().into_iter().collect(), || heap.region().set_features(&sim, FEATURE_EXPIRY));
    let crashes = killed.iter().flat_map(|image| {
        let sim = variant(Sim::from_image(image, Model::Line), canary);
        let images = |sim: &Sim| sim.images(IMAGE_COUNT_MAX, sim.step_count());
        at_steps(&sim, images, || drop(Heap::open(&sim, EngineNumber::HIKV, Host::default()).unwrap()))
    });
    let opens = crashes
        .map(|image| Heap::open(&Sim::from_image(&image, Model::Line), EngineNumber::HIKV, Host::default()).is_ok());
    let opens: Vec<bool> = opens.collect();
    (opens.len(), opens.iter().filter(|opens| !**opens).count())
}

#[test]
fn better_copy_is_durable_before_other_rewrite() {
    let (image_count, refused_count) = refused_after_a_kill(None);
    assert!(image_count > 200 && refused_count == 0, "{refused_count} of {image_count} are refused");
    assert!(refused_after_a_kill(Some(heap::canary::HEAD_LEFT_AS_FOUND)).1 > 0, "the broken variant was not caught");
}
