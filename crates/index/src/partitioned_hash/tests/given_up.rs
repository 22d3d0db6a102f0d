//! An abandoned batch leaves nothing behind on which another writer's entry would rely, and which a crash would
//! remove.

use std::thread;

use pmem::Canary;
use pmem_sim::{Image, Model, Sim};

use super::super::layout::{Home, LINE_ENTRY_COUNT};
use super::rig::{Key, Rig, key};
use crate::canary;

/// Keys of one home line, of different signatures.
fn keys() -> impl Iterator<Item = Key> {
    (0..=LINE_ENTRY_COUNT + 1).map(|number| key(0x77 + (number << 60), number))
}

/// Returns the number of present crash images that do not have this value under the key.
pub(super) fn lost_in(sim: &Sim, key: Key, value: u64) -> usize {
    let images = sim.images(100, 7);
    assert!(!images.is_empty());
    let is_lost = |image: &Image| Rig::opened(Sim::from_image(image, Model::Line), 1).get(key) != Some(value);
    images.iter().filter(|image| is_lost(image)).count()
}

/// Returns the number of images that lack an entry which another thread put, and which overflowed like the
/// abandoned batch.
fn lost_count(canary: Option<Canary>, as_one_of_many: bool) -> usize {
    let sim = Sim::new(0, Model::Line);
    let rig = Rig::format(canary.map_or(sim.clone(), |canary| sim.with_canary(canary)), 1);
    let mut keys = keys();
    keys.by_ref().take(LINE_ENTRY_COUNT as usize).for_each(|key| _ = rig.put(key, 1));
    let [given_up, put] = [keys.next(), keys.next()].map(Option::unwrap);
    assert!(Home::of(given_up.signature) == Home::of(put.signature));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _pin = epoch::pin();
            let signatures = [given_up.signature];
            let mut batch = rig.index.lock_batch(rig.cx(), &signatures);
            batch.insert(0, 0, rig.write_item(given_up, 1));
        });
        other.join().unwrap();
    });
    let _pin = epoch::pin();
    let position = rig.write_item(put, 2);
    let bucket = rig.index.lock(rig.cx(), put.signature);
    let bucket = if as_one_of_many { bucket.in_group() } else { bucket };
    let published = bucket.insert(position).unwrap();
    rig.commit_all();
    published.settle(&rig.medium).unwrap();
    lost_in(&rig.medium, put, 2)
}

#[test]
fn overflow_after_abandoned_batch_is_durable() {
    for as_one_of_many in [false, true] {
        assert_eq!(lost_count(None, as_one_of_many), 0);
        assert!(lost_count(Some(canary::WAYS_MARKED_EARLY), as_one_of_many) > 0, "the broken variant was not caught");
    }
}
