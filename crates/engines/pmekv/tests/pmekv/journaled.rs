//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use testkit::{Crashed, OnDisk, Script, Settings, Shape, survives};

use crate::subject::{OfPmekv, PARAMETERS, shape};

#[test]
fn it_survives_on_a_disk() {
    let settings = Settings::on_disk(PARAMETERS.region_bytes);
    let batches = Shape { batches: true, conditions: true, ..shape(16) };
    let seeded = (7..10).map(|seed| Script::seeded(seed, &shape(16)));
    let scripts: Vec<Script> = seeded.chain([Script::seeded(10, &batches)]).collect();
    let counts = survives::<Crashed<OfPmekv<OnDisk>>>(&scripts, &settings);
    assert!(counts.reach(500, 1000, 100), "{counts:?}");
}
