//! The engine on the journal, on a disk that loses, tears and reorders writes that were not synced.

use testkit::{
    Crashed, FEW_PAGES, OnDisk, Script, Settings, Shape, evictions_change_no_answer, evictions_survive, survives,
};

use crate::subject::{OfPmekv, PARAMETERS, shape};

type WithFewPages = OfPmekv<OnDisk<FEW_PAGES>>;

fn settings() -> Settings {
    Settings::on_disk(PARAMETERS.region_bytes)
}

fn scripts() -> Vec<Script> {
    let batches = Shape { batches: true, conditions: true, ..shape(16) };
    let seeded = (7..10).map(|seed| Script::seeded(seed, &shape(16)));
    seeded.chain([Script::seeded(10, &batches)]).collect()
}

#[test]
fn it_survives_on_a_disk() {
    let counts = survives::<Crashed<OfPmekv<OnDisk>>>(&scripts(), &settings());
    assert!(counts.reach(500, 1000, 100), "{counts:?}");
}

#[test]
fn it_survives_evictions() {
    let counts = evictions_survive::<WithFewPages>(&scripts(), &settings());
    assert!(counts.reach(500, 1000, 100), "{counts:?}");
}

#[test]
fn evictions_change_nothing() {
    evictions_change_no_answer::<WithFewPages>(true);
}
