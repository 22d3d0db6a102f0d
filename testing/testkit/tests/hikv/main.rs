//! HiKV crashed at every step: nothing acknowledged is lost, the ordered index matches the hash index, and every broken
//! variant is caught.
//!
//! These tests explore a slice of the work of `cargo xtask explore`, which also runs the ignored tests. The pages of
//! `docs/format` are compared here as well (`format_docs`), so that the stores of both are compiled only once.

mod absent;
mod batches;
mod cached;
mod closes;
mod compactions;
mod deferred;
mod failed_batches;
mod failed_writes;
mod format_docs;
mod journaled;
mod killed;
mod large_batches;
mod lost;
mod scripts;
mod snapshots;
mod subject;
mod two_writers;

use pmem::Canary;
use pmem_sim::{Model, Sim};
use scripts::{
    around_a_split, clears_and_reopens, compared, crowded_chunk, everyday, expiring, expiring_in_order,
    full_and_not_full, growth, in_order, mixed, reopened_after_a_split, several_at_once, several_where_it_is_full,
};
use subject::{Crashed, InOrder, NoOrder, OfHiKv, REGION_BYTES};
use testkit::{
    Counts, Op, Script, Settings, Shape, Subject, Verdict, Violation, Visitor, conformance, hunt, rules_hold, survives,
};

fn settings() -> Settings {
    Settings { region_bytes: REGION_BYTES, visitors: Visitor::all(4), ..Settings::default() }
}

/// Settings for runs of minutes.
fn thorough() -> Settings {
    Settings { region_bytes: REGION_BYTES, nested_images_max: 16, ..Settings::default() }
}

/// Settings for stores of hundreds of keys, whose recovery takes that many times as long.
fn sparing() -> Settings {
    Settings {
        images_per_step_max: 6,
        images_per_op_max: 200,
        nested_images_max: 2,
        visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways],
        ..settings()
    }
}

/// Settings for scripts of many steps, of which a quarter of the images is a fair sample; the ignored tests examine
/// more.
fn sampled_images() -> Settings {
    Settings { images_per_op_max: 50, ..sparing() }
}

/// Settings for broken variants that need many images of one step and no visitor.
fn at_rest() -> Settings {
    Settings { images_per_step_max: 24, nested_images_max: 0, visitors: vec![Visitor::Nobody], ..sparing() }
}

fn passes<S: Subject>(scripts: &[Script], settings: &Settings) -> Counts {
    survives::<S>(scripts, settings)
}

#[test]
fn everyday_operations_survive() {
    let counts = passes::<Crashed>(&everyday(), &settings());
    assert!(counts.reach(1000, 1000, 100), "{counts:?}");
}

#[test]
fn clear_and_reopen_survive() {
    passes::<Crashed>(&clears_and_reopens(), &settings());
}

#[test]
fn several_puts_at_once_survive() {
    passes::<Crashed>(&[several_at_once()], &settings());
}

#[test]
fn conditional_writes_survive() {
    passes::<Crashed>(&compared(), &settings());
    passes::<InOrder>(&compared()[..1], &settings());
}

#[test]
fn expiring_keys_survive_until_expiry() {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways, Visitor::ReaderAfter(2)];
    let few_visitors = Settings { visitors, ..settings() };
    let counts = passes::<Crashed>(&expiring(), &few_visitors);
    assert!(counts.reach(500, 0, 0), "{counts:?}");
    passes::<InOrder>(&[expiring_in_order()], &few_visitors);
}

#[test]
fn broken_expiry_is_caught() {
    caught(heap::canary::FEATURE_NOT_STORED, Model::Line, &expiring(), settings());
}

#[test]
fn ordered_keys_survive_in_order() {
    passes::<InOrder>(&in_order(), &settings());
}

#[test]
fn growth_survives() {
    passes::<Crashed>(&[growth()], &sparing());
}

#[test]
fn full_medium_at_every_step_loses_nothing() {
    passes::<Crashed>(&full_and_not_full(), &sparing());
    passes::<InOrder>(&[several_where_it_is_full()], &sparing());
}

#[test]
fn split_survives() {
    let counts = passes::<Crashed>(&[reopened_after_a_split()], &sampled_images());
    assert!(counts.reach(100, 0, 0), "{counts:?}");
    let counts = passes::<InOrder>(&[around_a_split()], &sampled_images());
    assert!(counts.reach(100, 0, 0), "{counts:?}");
}

/// Explores every script, and many random ones.
fn all_for_long<S: Subject>() {
    let few_keys = [
        everyday(),
        clears_and_reopens(),
        vec![several_at_once()],
        compared(),
        expiring(),
        in_order(),
        mixed(100..120),
    ]
    .concat();
    passes::<S>(&few_keys, &thorough());
    let full = [full_and_not_full(), vec![several_where_it_is_full()]].concat();
    passes::<S>(&[full, vec![growth(), around_a_split(), reopened_after_a_split()]].concat(), &sparing());
}

#[test]
#[ignore = "many minutes"]
fn everything_survives_for_long() {
    all_for_long::<Crashed>();
}

#[test]
#[ignore = "many minutes"]
fn everything_survives_in_order_for_long() {
    all_for_long::<InOrder>();
}

#[test]
fn the_rules_of_limits_hold() {
    rules_hold::<OfHiKv<NoOrder, Sim>>(&|| Sim::new(0, Model::Line));
}

fn answers_like_a_map<S: Subject<Medium = pmem_sim::Sim>>() {
    let shape = Shape {
        multi_puts: true,
        batches: true,
        conditions: true,
        swaps: true,
        scans: true,
        clears: true,
        ..Shape::small(2000)
    };
    let compared = conformance(|| Box::new(scripts::new_store::<S>()), &shape, 0..4);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 8000);
}

#[test]
fn it_answers_like_a_map() {
    answers_like_a_map::<Crashed>();
    answers_like_a_map::<InOrder>();
}

fn caught(canary: Canary, model: Model, scripts: &[Script], settings: Settings) -> Box<Violation> {
    match hunt::<Crashed>(canary, scripts, &Settings { models: vec![model], ..settings }) {
        Verdict::Caught(violation) => violation,
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught on {model:?}: {counts:?}"),
    }
}

#[test]
fn broken_writes_are_caught() {
    let scripts: Vec<_> = everyday().into_iter().chain(clears_and_reopens()).collect();
    for canary in [
        items::canary::ITEM_NOT_FLUSHED,
        engine_hikv::canary::ITEM_NOT_ORDERED,
        engine_hikv::canary::ENTRY_BEFORE_ITEM,
        index::canary::TORN_PAIR,
        engine_hikv::canary::PLAIN_ZERO_DELETE,
        index::canary::UNSETTLED_READ,
        heap::canary::FORMAT_MARK_EARLY,
        index::canary::CLEAR_BEFORE_SEGMENTS,
        heap::canary::PUT_BELOW_MARK,
        heap::canary::CHUNK_BEFORE_MARK,
    ] {
        caught(canary, Model::Line, &scripts, settings());
    }
}

#[test]
fn broken_puts_of_several_are_caught() {
    // Only a late reader finds the mark cleared: an early one clears it itself.
    let late = Settings { visitors: (12..18).map(Visitor::ReaderAfter).collect(), ..settings() };
    passes::<Crashed>(&[several_at_once()], &Settings { models: vec![Model::Line], ..late.clone() });
    for (canary, settings) in [
        (engine_hikv::canary::ITEM_NOT_ORDERED, settings()),
        (index::canary::TORN_PAIR, settings()),
        (engine_hikv::canary::SETTLED_BEFORE_COMMIT, late),
    ] {
        let violation = caught(canary, Model::Line, &[several_at_once()], settings);
        let is_by_itself = matches!(violation.op, Op::MultiPut(_)) && violation.images.len() == 1;
        assert!(is_by_itself, "caught at another operation: {violation}");
    }
}

#[test]
fn an_item_freed_too_early_is_caught() {
    passes::<Crashed>(&[crowded_chunk()], &sparing());
    caught(engine_hikv::canary::FREE_BEFORE_UNLINK, Model::Line, &[crowded_chunk()], sparing());
}

#[test]
fn broken_growth_is_caught() {
    for canary in [heap::canary::GROWTH_BEFORE_SUPERBLOCK, heap::canary::SUPERBLOCK_COPIES_TOGETHER] {
        caught(canary, Model::Line, &[growth()], at_rest());
    }
}

#[test]
fn broken_splits_are_caught() {
    let scripts = [around_a_split(), reopened_after_a_split()];
    for canary in [
        index::canary::OVERFLOW_BIT_LATE,
        index::canary::SPLIT_BEFORE_SEGMENTS,
        index::canary::GHOST_SEGMENT,
        index::canary::RECORD_CLEARED_EARLY,
        index::canary::SWEEP_MISSES_SPLIT,
    ] {
        caught(canary, Model::Line, &scripts, sparing());
    }
}
