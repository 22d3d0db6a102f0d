//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use pmem_sim::Model;
use testkit::{Crashed, OnDisk, Script, Settings, Shape, Visitor, explore, hunt};

use crate::crash::{dense_batch, expiring, shape, thinned};
use crate::subject::{OfInk, PARAMETERS};

fn settings() -> Settings {
    Settings {
        models: vec![Model::Disk],
        region_bytes: PARAMETERS.region_bytes,
        images_per_step_max: 8,
        images_per_op_max: 100,
        nested_images_max: 2,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4), Visitor::Deleter],
        ..Settings::default()
    }
}

#[test]
fn it_survives_on_a_disk() {
    let batches = Shape { batches: true, conditions: true, ..shape(16) };
    let seeded = (7..10).map(|seed| Script::seeded(seed, &shape(16)));
    let scripts: Vec<Script> =
        seeded.chain([Script::seeded(10, &batches), dense_batch(), expiring(), thinned()]).collect();
    let counts = explore::<Crashed<OfInk<true, OnDisk>>>(&scripts, &settings())
        .unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(1000, 3000, 200), "{counts:?}");
}

/// A later reader finds no ticket at the lock, and sees data that no sync has reached.
#[test]
fn lock_without_its_ticket_is_caught() {
    let settings = Settings { visitors: vec![Visitor::ReaderAlways], ..settings() };
    let scripts = [Script::seeded(7, &shape(16))];
    let verdict = hunt::<Crashed<OfInk<true, OnDisk>>>(pbtree::canary::UNLOCKED_BEFORE_COMMIT, &scripts, &settings);
    assert!(verdict.is_caught(), "{verdict:?}");
}
