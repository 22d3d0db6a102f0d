//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use testkit::{Crashed, OnDisk, Script, Settings, Shape, Visitor, catches, survives};

use crate::crash::{dense_batch, shape, thinned};
use crate::subject::{OfInk, PARAMETERS};

fn settings() -> Settings {
    Settings::on_disk(PARAMETERS.region_bytes)
}

#[test]
fn it_survives_on_a_disk() {
    let batches = Shape { batches: true, conditions: true, ..shape(16) };
    let seeded = (7..10).map(|seed| Script::seeded(seed, &shape(16)));
    let scripts: Vec<Script> =
        seeded.chain([Script::seeded(10, &batches), dense_batch(), Script::expiring(), thinned()]).collect();
    let counts = survives::<Crashed<OfInk<true, OnDisk>>>(&scripts, &settings());
    assert!(counts.reach(1000, 3000, 200), "{counts:?}");
}

/// A later reader finds no ticket at the lock, and sees data that no sync has reached.
#[test]
fn lock_without_its_ticket_is_caught() {
    let settings = Settings { visitors: vec![Visitor::ReaderAlways], ..settings() };
    let scripts = [Script::seeded(7, &shape(16))];
    catches::<Crashed<OfInk<true, OnDisk>>>(pbtree::canary::UNLOCKED_BEFORE_COMMIT, &scripts, &settings);
}
