//! The explorer's own test: a sound little store passes, and every broken twin of it is caught.

mod slot_table;

use pmem::Canary;
use pmem_sim::Model;
use slot_table::{REGION_BYTES, SlotTable};
use testkit::{Counts, Objection, Op, Script, Settings, Shape, Verdict, explore, hunt};

fn settings() -> Settings {
    Settings { region_bytes: REGION_BYTES, ..Settings::default() }
}

fn on(model: Model) -> Settings {
    Settings { models: vec![model], ..settings() }
}

fn put(key: &str, value: &str) -> Op {
    Op::Put(key.into(), value.into())
}

fn delete(key: &str) -> Op {
    Op::Delete(key.into())
}

/// Every kind of operation, and each against what the last one left.
fn written_script() -> Script {
    let ops = [
        put("a", "1"),
        put("a", "a value that reaches over the end of a line, since it is longer than 64 bytes"),
        put("b", ""),
        delete("a"),
        put("a", "3"),
        put("", "the empty key"),
        Op::Clear,
        put("c", "after clear"),
        Op::Reopen,
        Op::Clear,
        put("d", "in the first table again"),
        delete("d"),
        delete("d"),
    ];
    Script::fresh(1, ops)
}

fn seeded_scripts() -> Vec<Script> {
    let shape =
        Shape { value_lens_bytes: vec![0, 1, 8, 30], clears: true, reopens: true, fills: true, ..Shape::small(16) };
    (2..6).map(|seed| Script::seeded(seed, &shape)).collect()
}

fn scripts() -> Vec<Script> {
    [written_script()].into_iter().chain(seeded_scripts()).collect()
}

fn passes(scripts: &[Script], settings: &Settings) -> Counts {
    explore::<SlotTable>(scripts, settings).unwrap_or_else(|objection| panic!("{objection}"))
}

#[test]
fn a_sound_store_passes_on_both_models() {
    for model in [Model::Line, Model::Span] {
        let counts = passes(&scripts(), &on(model));
        let Counts { steps, images, nested_images, visits } = counts;
        assert!(steps > 1000 && images > 1000 && nested_images > 1000 && visits > 100, "{model:?}: {counts:?}");
    }
}

#[test]
fn an_exploration_repeats_exactly() {
    assert_eq!(passes(&[written_script()], &settings()), passes(&[written_script()], &settings()));
}

/// The sound store passes these scripts, so what is caught is the twin's fault.
fn assert_caught(canary: Canary, model: Model) {
    match hunt::<SlotTable>(canary, &scripts(), &on(model)) {
        Verdict::Caught(violation) => assert!(!violation.to_string().is_empty()),
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught on {model:?}: {counts:?}"),
    }
}

#[test]
fn every_broken_twin_is_caught_on_memory() {
    for canary in [
        Canary::ItemNotFlushed,
        Canary::ItemNotOrdered,
        Canary::EntryBeforeItem,
        Canary::TornPair,
        Canary::PlainZeroDelete,
        Canary::UnsettledRead,
        Canary::UnsettledAbsent,
        Canary::FreeBeforeUnlink,
        Canary::FormatMarkEarly,
        Canary::ClearBeforeSegments,
    ] {
        assert_caught(canary, Model::Line);
    }
}

#[test]
fn every_broken_twin_is_caught_on_a_log() {
    for canary in [
        Canary::ItemNotFlushed,
        Canary::EntryBeforeItem,
        Canary::TornPair,
        Canary::PlainZeroDelete,
        Canary::UnsettledRead,
        Canary::UnsettledAbsent,
        Canary::FreeBeforeUnlink,
        Canary::FormatMarkEarly,
        Canary::ClearBeforeSegments,
    ] {
        assert_caught(canary, Model::Span);
    }
}

#[test]
fn a_log_has_an_order_of_its_own() {
    assert!(!hunt::<SlotTable>(Canary::ItemNotOrdered, &scripts(), &on(Model::Span)).is_caught());
}

#[test]
fn an_exploration_of_nothing_is_an_objection() {
    let nothing = Script::after(7, [put("a", "1")], []);
    assert_eq!(explore::<SlotTable>(&[nothing], &settings()), Err(Objection::Inconclusive { seed: 7 }));
    assert!(matches!(explore::<SlotTable>(&[], &settings()), Err(Objection::Inconclusive { .. })));
    let blind = Settings { images_per_step_max: 0, ..settings() };
    assert_eq!(explore::<SlotTable>(&[written_script()], &blind), Err(Objection::Inconclusive { seed: 1 }));
}
