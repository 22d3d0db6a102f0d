//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use testkit::{Crashed, OnDisk, Script, Settings, Shape, survives};

use crate::crash::{batch, refills, shape};
use crate::subject::{OfRewoHash, PARAMETERS};

#[test]
fn it_survives_on_a_disk() {
    let settings = Settings::on_disk(PARAMETERS.region_bytes);
    let batches = Shape { batches: true, conditions: true, ..shape(16) };
    let scripts =
        [Script::seeded(7, &shape(8)), Script::seeded(8, &shape(16)), Script::seeded(9, &batches), batch(), refills()];
    let counts = survives::<Crashed<OfRewoHash<OnDisk>>>(&scripts, &settings);
    assert!(counts.reach(500, 1000, 100), "{counts:?}");
}
