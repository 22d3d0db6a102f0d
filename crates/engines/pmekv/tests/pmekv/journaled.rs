//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use pmem_sim::Model;
use testkit::{Crashed, OnDisk, Script, Settings, Shape, Visitor, explore};

use crate::subject::{OfPmekv, PARAMETERS, shape};

#[test]
fn it_survives_on_a_disk() {
    let settings = Settings {
        models: vec![Model::Disk],
        region_bytes: PARAMETERS.region_bytes,
        images_per_step_max: 8,
        images_per_op_max: 100,
        nested_images_max: 2,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4), Visitor::Deleter],
        ..Settings::default()
    };
    let batches = Shape { batches: true, conditions: true, ..shape(16) };
    let seeded = (7..10).map(|seed| Script::seeded(seed, &shape(16)));
    let scripts: Vec<Script> = seeded.chain([Script::seeded(10, &batches)]).collect();
    let counts =
        explore::<Crashed<OfPmekv<OnDisk>>>(&scripts, &settings).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(500, 1000, 100), "{counts:?}");
}
