//! The explorer's own test: a correct small store passes, and every broken variant of it is caught.

use crate::slot_table::{REGION_BYTES, SlotTable};
use crate::variant::{Embroidering, EndsEarly, InOrder, Leaky, Panicking, Repeats, RootTakenAway, Twist, Variant};
use pmem::Canary;
use pmem_sim::Model;
use testkit::{
    Counts, Extent, Objection, Op, Problem, Script, Settings, Shape, Verdict, Violation, Visitor, explore, hunt,
    survives,
};

fn settings() -> Settings {
    Settings { region_bytes: REGION_BYTES, extent: Extent::Whole, ..Settings::default() }
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

/// Returns a script with every kind of operation, each of them meeting the state that the one before left.
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
    survives::<SlotTable>(scripts, settings)
}

#[test]
fn sound_store_passes_on_both_models() {
    for model in [Model::Line, Model::Span] {
        let counts = passes(&scripts(), &on(model));
        let Counts { steps, images, nested_images, visits } = counts;
        assert!(steps > 1000 && images > 1000 && nested_images > 1000 && visits > 100, "{model:?}: {counts:?}");
    }
}

#[test]
fn an_exploration_repeats_exactly() {
    // No writers: a second writer is a thread, and the time at which it sleeps varies.
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::ReaderAfter(3), Visitor::Deleter];
    let settings = Settings { visitors, ..settings() };
    assert_eq!(passes(&[written_script()], &settings), passes(&[written_script()], &settings));
}

#[test]
fn second_writers_acknowledgement_counts() {
    let writer = Settings { visitors: vec![Visitor::WriterAlways], ..settings() };
    let counts = passes(&scripts(), &writer);
    assert!(counts.visits > 100 && counts.images > 1000, "{counts:?}");
    for model in [Model::Line, Model::Span] {
        let settings = Settings { visitors: vec![Visitor::WriterAlways], ..on(model) };
        assert!(
            hunt::<SlotTable>(testkit::canary::SECOND_NOT_WAITED, &[written_script()], &settings).is_caught(),
            "{model:?}"
        );
        let alone = Settings { visitors: vec![Visitor::Nobody, Visitor::ReaderAlways], ..on(model) };
        assert!(
            !hunt::<SlotTable>(testkit::canary::SECOND_NOT_WAITED, &[written_script()], &alone).is_caught(),
            "{model:?}"
        );
    }
}

/// Checks that the broken variant is caught. The sound store passes the same scripts, so the bug is the reason.
fn assert_caught(canary: Canary, model: Model) {
    match hunt::<SlotTable>(canary, &scripts(), &on(model)) {
        Verdict::Caught(violation) => assert!(!violation.to_string().is_empty()),
        Verdict::NotCaught(counts) => panic!("{canary:?} was not caught on {model:?}: {counts:?}"),
    }
}

/// Canaries of rules that matter on a log as well.
const EVERYWHERE: [Canary; 8] = [
    items::canary::ITEM_NOT_FLUSHED,
    engine_hikv::canary::ENTRY_BEFORE_ITEM,
    index::canary::TORN_PAIR,
    engine_hikv::canary::PLAIN_ZERO_DELETE,
    index::canary::UNSETTLED_READ,
    engine_hikv::canary::FREE_BEFORE_UNLINK,
    heap::canary::FORMAT_MARK_EARLY,
    index::canary::CLEAR_BEFORE_SEGMENTS,
];

#[test]
fn every_broken_variant_is_caught_on_memory() {
    EVERYWHERE
        .into_iter()
        .chain([engine_hikv::canary::ITEM_NOT_ORDERED])
        .for_each(|canary| assert_caught(canary, Model::Line));
}

#[test]
fn log_explorer_catches_every_broken_variant() {
    EVERYWHERE.into_iter().for_each(|canary| assert_caught(canary, Model::Span));
}

#[test]
fn log_has_order_of_its_own() {
    assert!(!hunt::<SlotTable>(engine_hikv::canary::ITEM_NOT_ORDERED, &scripts(), &on(Model::Span)).is_caught());
}

#[test]
fn an_exploration_of_nothing_is_an_objection() {
    let nothing = Script::after(7, [put("a", "1")], []);
    assert_eq!(explore::<SlotTable>(&[nothing], &settings()), Err(Objection::Inconclusive { seed: 7 }));
    assert!(matches!(explore::<SlotTable>(&[], &settings()), Err(Objection::Inconclusive { .. })));
    let blind = Settings { images_per_step_max: 0, ..settings() };
    assert_eq!(explore::<SlotTable>(&[written_script()], &blind), Err(Objection::Inconclusive { seed: 1 }));
}

/// Explores the written script without its reopening, with a broken variant, on both models.
fn objection_to<T: Twist>(settings: &Settings) -> Result<Counts, Box<Violation>> {
    let mut script = written_script();
    script.explored.retain(|op| *op != Op::Reopen);
    explore::<Variant<T>>(&[script], settings).map_err(|objection| match objection {
        Objection::Violation(violation) => violation,
        Objection::Inconclusive { seed } => panic!("script {seed} led to no image"),
    })
}

#[test]
fn only_nested_crash_finds_unrepeatable_recovery() {
    let violation = objection_to::<RootTakenAway>(&settings()).expect_err("the root is away for a moment");
    assert_eq!(violation.images.len(), 2, "{violation}");
    assert!(matches!(violation.problem, Problem::Contents(_)), "{violation}");
    let shallow = Settings { nested_images_max: 0, ..settings() };
    assert!(objection_to::<RootTakenAway>(&shallow).is_ok());
}

#[test]
fn leak_is_violation() {
    let violation = objection_to::<Leaky>(&settings()).expect_err("a byte leaks");
    assert!(matches!(violation.problem, Problem::Leak(_)), "{violation}");
}

#[test]
fn lookup_contradicting_list_is_violation() {
    let violation = objection_to::<Embroidering>(&settings()).expect_err("values are longer than they were");
    assert!(matches!(violation.problem, Problem::Lookup(_)), "{violation}");
}

#[test]
fn scan_contradicting_lookups_is_violation() {
    assert!(objection_to::<InOrder>(&settings()).is_ok());
    for violation in [objection_to::<EndsEarly>(&settings()), objection_to::<Repeats>(&settings())] {
        let violation = violation.expect_err("the last item is not shown once");
        assert!(matches!(violation.problem, Problem::Order { .. }), "{violation}");
    }
}

#[test]
fn interposed_reader_differs_from_put() {
    let readers = Settings { visitors: vec![Visitor::ReaderAlways], images_per_step_max: 0, ..settings() };
    let violation = objection_to::<Embroidering>(&readers).expect_err("values are longer than they were");
    assert!(matches!(violation.problem, Problem::Reader(_)), "{violation}");
    assert!(violation.images.is_empty(), "{violation}");
}

#[test]
fn panic_in_recovery_is_violation() {
    let violation = objection_to::<Panicking>(&settings()).expect_err("recovery panics");
    assert!(matches!(violation.problem, Problem::Panicked(_)), "{violation}");
}

#[test]
fn second_deleter_waits_for_durability() {
    let deleter = Settings { visitors: vec![Visitor::Deleter], ..on(Model::Span) };
    assert!(passes(&[written_script()], &deleter).visits > 0);
    assert!(hunt::<SlotTable>(index::canary::UNSETTLED_READ, &[written_script()], &deleter).is_caught());
}
