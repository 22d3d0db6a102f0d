//! HiKV on the journal, on a disk that loses, tears and reorders data that was not synced.

use pmem::Canary;
use pmem_sim::Model;
use testkit::{OnDisk, Script, Settings, Verdict, Violation, Visitor, hunt, survives};

use crate::scripts::{
    around_a_split, clears_and_reopens, delete, everyday, full_and_not_full, growth, multi_put, put, several_at_once,
};
use crate::subject::{Crashed, NoOrder, REGION_BYTES};

/// The store that is crashed.
pub(crate) type Journal<O = NoOrder> = Crashed<O, OnDisk>;

pub(crate) fn settings() -> Settings {
    Settings {
        models: vec![Model::Disk],
        region_bytes: REGION_BYTES,
        images_per_step_max: 8,
        images_per_op_max: 100,
        nested_images_max: 2,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::Deleter, Visitor::WriterAfter(4)],
        ..Settings::default()
    }
}

pub(crate) fn passes(scripts: &[Script], settings: &Settings) -> testkit::Counts {
    survives::<Journal>(scripts, settings)
}

pub(crate) fn caught(canary: Canary, scripts: &[Script], settings: Settings) -> Box<Violation> {
    match hunt::<Journal>(canary, scripts, &settings) {
        Verdict::Caught(violation) => violation,
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught: {counts:?}"),
    }
}

/// Settings for stores of large values or hundreds of keys.
pub(crate) fn sparing() -> Settings {
    Settings {
        images_per_step_max: 3,
        images_per_op_max: 40,
        nested_images_max: 1,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4)],
        ..settings()
    }
}

/// Enough changes of few keys to fill the log several times.
pub(crate) fn filling() -> Script {
    let value = |i: u8| vec![i; 700];
    Script::fresh(70, (0..60u8).map(|i| if i % 7 == 6 { delete([i % 5]) } else { put([i % 5], value(i)) }))
}

/// As many changes of as many keys, hardly any of them waited for: checkpoints run while entries are not durable.
fn filling_at_once() -> Script {
    let many = |i: u8| multi_put((0..24u8).map(move |key| ([key], vec![i; 120 + usize::from(i)])));
    Script::fresh(83, (0..12u8).map(many))
}

#[test]
fn everyday_operations_survive() {
    let counts = passes(&everyday(), &settings());
    assert!(counts.reach(300, 500, 50), "{counts:?}");
}

#[test]
fn clears_reopens_and_multi_puts_survive() {
    passes(&[clears_and_reopens(), vec![several_at_once()]].concat(), &settings());
}

#[test]
fn log_that_fills_again_and_again_survives() {
    let counts = passes(&[filling(), filling_at_once()], &sparing());
    assert!(counts.reach(300, 0, 0), "{counts:?}");
}

#[test]
fn growth_and_a_full_disk_survive() {
    passes(&[growth()], &sparing());
    passes(&full_and_not_full(), &sparing());
}

#[test]
fn split_survives() {
    passes(&[around_a_split()], &sparing());
}

/// Each canary with the cheapest script that shows the bug.
#[test]
fn broken_journals_are_caught() {
    let thorough = || Settings {
        images_per_step_max: 40,
        images_per_op_max: 40,
        nested_images_max: 0,
        visitors: vec![Visitor::Nobody],
        ..settings()
    };
    for (canary, script) in [
        (journal::canary::WAIT_BEFORE_SYNC, everyday().remove(0)),
        (journal::canary::LOG_ORDER_UNLIKE_STORES, several_at_once()),
        (journal::canary::TORN_RECORD_ACCEPTED, everyday().remove(0)),
        (journal::canary::BASE_BEFORE_LOG, everyday().remove(0)),
        (journal::canary::OLD_RECORDS_REPLAYED, filling()),
        (journal::canary::FRAMES_BEFORE_HEADER, filling()),
        (journal::canary::RECYCLED_BEFORE_BASE, filling()),
        (journal::canary::LOADED_WITHOUT_REDO, everyday().remove(0)),
        (journal::canary::REPLAYED_PAGES_UNMARKED, filling()),
    ] {
        caught(canary, &[script], thorough());
    }
}
