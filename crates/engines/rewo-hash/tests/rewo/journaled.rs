//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use pmem_sim::Model;
use testkit::{Crashed, OnDisk, Script, Settings, Shape, Visitor, explore};

use crate::crash::{batch, refills, shape};
use crate::subject::{OfRewoHash, PARAMETERS};

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
    let scripts =
        [Script::seeded(7, &shape(8)), Script::seeded(8, &shape(16)), Script::seeded(9, &batches), batch(), refills()];
    let counts =
        explore::<Crashed<OfRewoHash<OnDisk>>>(&scripts, &settings).unwrap_or_else(|objection| panic!("{objection}"));
    assert!(counts.reach(500, 1000, 100), "{counts:?}");
}
