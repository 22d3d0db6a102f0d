//! HiKV crashed at every step: nothing acknowledged is lost, and every broken twin is caught.

mod closes;
mod scripts;
mod subject;

use pmem::Canary;
use pmem_sim::Model;
use scripts::{
    around_a_split, clears_and_reopens, crowded_chunk, everyday, full_and_room_again, growth, reopened_after_a_split,
};
use subject::{Crashed, REGION_BYTES};
use testkit::{Counts, Script, Settings, Shape, Verdict, Visitor, conformance, explore, hunt};

fn settings() -> Settings {
    Settings { region_bytes: REGION_BYTES, ..Settings::default() }
}

/// For stores of hundreds of keys, whose recovery takes as many times as long.
fn sparing() -> Settings {
    Settings {
        images_per_step_max: 6,
        images_per_op_max: 200,
        nested_images_max: 2,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways],
        ..settings()
    }
}

fn passes(scripts: &[Script], settings: &Settings) -> Counts {
    explore::<Crashed>(scripts, settings).unwrap_or_else(|objection| panic!("{objection}"))
}

#[test]
fn everyday_operations_survive() {
    let counts = passes(&everyday(), &settings());
    assert!(counts.images > 1000 && counts.nested_images > 1000 && counts.visits > 100, "{counts:?}");
}

#[test]
fn clear_and_reopen_survive() {
    passes(&clears_and_reopens(), &settings());
}

#[test]
fn growth_survives() {
    passes(&[growth()], &sparing());
}

#[test]
fn a_full_medium_at_every_step_loses_nothing() {
    passes(&full_and_room_again(), &sparing());
}

#[test]
fn a_split_survives() {
    let counts = passes(&[around_a_split(), reopened_after_a_split()], &sparing());
    assert!(counts.images > 100, "{counts:?}");
}

#[test]
fn it_answers_like_a_map() {
    let shape = Shape { clears: true, ..Shape::small(2000) };
    let compared = conformance(|| Box::new(scripts::new_store()), &shape, 0..4);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 8000);
}

fn caught(canary: Canary, model: Model, scripts: &[Script], settings: Settings) {
    match hunt::<Crashed>(canary, scripts, &Settings { models: vec![model], ..settings }) {
        Verdict::Caught(_) => {}
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught on {model:?}: {counts:?}"),
    }
}

#[test]
fn broken_writes_are_caught() {
    let scripts: Vec<_> = everyday().into_iter().chain(clears_and_reopens()).collect();
    for canary in [
        Canary::ItemNotFlushed,
        Canary::ItemNotOrdered,
        Canary::EntryBeforeItem,
        Canary::TornPair,
        Canary::PlainZeroDelete,
        Canary::UnsettledRead,
        Canary::FormatMarkEarly,
        Canary::ClearBeforeSegments,
        Canary::PutBelowMark,
        Canary::ChunkBeforeMark,
    ] {
        caught(canary, Model::Line, &scripts, settings());
    }
}

#[test]
fn an_item_freed_too_early_is_caught() {
    passes(&[crowded_chunk()], &sparing());
    caught(Canary::FreeBeforeUnlink, Model::Line, &[crowded_chunk()], sparing());
}

#[test]
fn broken_growth_is_caught() {
    for canary in [Canary::GrowthBeforeSuperblock, Canary::SuperblockCopiesTogether] {
        caught(canary, Model::Line, &[growth()], sparing());
    }
}

#[test]
fn broken_splits_are_caught() {
    let scripts = [around_a_split(), reopened_after_a_split()];
    for canary in [
        Canary::OverflowBitLate,
        Canary::SplitBeforeSegments,
        Canary::GhostSegment,
        Canary::RecordClearedEarly,
        Canary::SweepMissesSplit,
    ] {
        caught(canary, Model::Line, &scripts, sparing());
    }
}
