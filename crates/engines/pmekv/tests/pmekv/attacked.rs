//! Processes killed at the steps of a checkpoint, followed by a power loss: the explorer's scripts do not reuse the
//! space that a killed checkpoint freed.

use std::sync::{Arc, Mutex};

use engine::OpenError;
use engine::prelude::*;
use engine_pmekv::{Options, Pmekv};
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim};

use crate::subject::{OnSim, PARAMETERS};

const SHORT: Options = Options { log_entry_count_max: 1_000, segment_entry_count: 3 };

const KEYS: [[u8; 1]; 6] = [[0], [1], [2], [3], [4], [5]];

fn opened(image: &Image, canary: Canary) -> Result<(Sim, OnSim), OpenError> {
    let sim = Sim::from_image(image, Model::Line).with_canary(canary);
    Ok((sim.clone(), Pmekv::open(sim, HostDram, SHORT)?))
}

/// Returns the images that a process leaves if it is killed at any step of `work`.
fn kills(sim: &Sim, work: impl FnOnce()) -> Vec<Image> {
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim, _| noted.lock().unwrap().extend(sim.killed())));
    work();
    sim.unobserve();
    std::mem::take(&mut *images.lock().unwrap())
}

fn value(store: &OnSim, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    store.get(key, &mut |_, _, value| found = Some(value.to_vec())).unwrap();
    found
}

/// Returns true if everything that a killed process has stored, at any step of a checkpoint and of new segments, is
/// durable once the next process serves: the root's word, the words of lanes, and entries.
fn keeps_what_a_killed_checkpoint_left(canary: Canary) -> bool {
    let sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, SHORT).unwrap();
    (0..6u8).for_each(|i| store.put(&[i], &[i; 20]).unwrap());
    store.checkpoint().unwrap();
    (0..6u8).for_each(|i| store.put(&[i], &[i + 10; 20]).unwrap());
    let killed = kills(&sim, || {
        store.checkpoint().unwrap();
        (0..6u8).for_each(|i| store.put(&[i], &[i + 20; 20]).unwrap());
    });
    killed.iter().enumerate().all(|(number, image)| {
        let (sim, store) = opened(image, canary).unwrap();
        let served = KEYS.map(|key| value(&store, &key));
        assert!(served.iter().all(Option::is_some), "kill {number}");
        // Reuse the space that the killed process's checkpoint has freed.
        (10..40u8).for_each(|i| store.put(&[i], &[i; 4_000]).unwrap());
        sim.images(24, number as u64).iter().all(|image| {
            let Ok((_, store)) = opened(image, canary) else { return false };
            KEYS.map(|key| value(&store, &key)) == served && (10..40u8).all(|i| value(&store, &[i]).is_some())
        })
    })
}

#[test]
fn killed_checkpoint_survives_later_power_loss() {
    assert!(keeps_what_a_killed_checkpoint_left(Canary("none")));
    assert!(!keeps_what_a_killed_checkpoint_left(heap::canary::HEAD_LEFT_AS_FOUND));
}
