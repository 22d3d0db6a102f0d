//! Batches with more keys than a segment has entries. Their records are longer than a segment, and longer than a block
//! and a segment of the log; their items are more than a log holds. They run on memory, with an ordered index, and on
//! the journal, waited for and deferred.
//!
//! `cargo test --release -p hikv-testkit --test hikv large_batches -- --ignored` examines ten times as much.

use index::partitioned_hash::batch::record::record_bytes;
use index::partitioned_hash::layout::SEGMENT_ENTRY_COUNT;
use pmem_sim::{Model, StepKind};
use testkit::{Counts, Extent, Op, Script, Settings, Visitor, small_journal};

use crate::batches::batch;
use crate::deferred::Deferring;
use crate::journaled::{self, Journal};
use crate::scripts::put;
use crate::subject::{Crashed, InOrder, NoOrder, REGION_BYTES, WithOrder};
use crate::{caught, passes, sparing};

/// Keys of a batch.
const KEY_COUNT: u32 = 1_100;
const _: () = assert!(KEY_COUNT as u64 > SEGMENT_ENTRY_COUNT && record_bytes(KEY_COUNT as usize) > 1 << 14);
/// A value length at which so many items do not fit in the region's initial size.
const FILLING_BYTES: usize = (REGION_BYTES / KEY_COUNT as u64) as usize;

/// Some of many keys are replaced and others deleted while new keys are added, for which segments are split.
fn large() -> Script {
    Script::after(90, [put("other", "1"), all("1")], [mixed(), put([0; 4], "3"), Op::Reopen])
}

/// The same with scans: many changes in one place of the queue.
fn large_in_order() -> Script {
    let ops = [mixed(), put([0; 4], "4"), Op::Scan];
    Script::after(93, [Op::Scan, put("other", "1"), all("1")], ops)
}

fn all(value: &'static str) -> Op {
    batch((0..KEY_COUNT).map(move |i| (i.to_be_bytes(), Some(value))))
}

fn mixed() -> Op {
    batch((KEY_COUNT / 3..KEY_COUNT * 4 / 3).map(|i| (i.to_be_bytes(), (i % 3 > 0).then_some("2"))))
}

/// The first batch of an empty store.
fn first() -> Script {
    Script::fresh(91, [all("1")])
}

/// The region becomes full in the middle of a batch, before its record has space. Then a smaller batch finds space, and
/// so does a large one that deletes.
fn without_space() -> Script {
    let values = |fill: u8, len: usize| move |i: u32| (i.to_be_bytes(), Some(vec![fill; len]));
    let ops = [
        batch((0..KEY_COUNT).map(values(2, FILLING_BYTES))),
        batch((0..KEY_COUNT).map(values(3, 100))),
        batch((0..KEY_COUNT).map(|i| (i.to_be_bytes(), None::<Vec<u8>>))),
    ];
    Script::after(92, [Op::Full, batch((0..KEY_COUNT).map(values(1, 100)))], ops)
}

/// A reader and a second writer at ordering fences: a few of the thousands of steps.
fn few() -> Settings {
    fewer(sparing(), [Visitor::ReaderAt(StepKind::Order), Visitor::WriterAt(StepKind::Order)])
}

/// A log orders writes without fences. There the visitors come in the middle of the batch and at its wait.
fn few_on_a_journal() -> Settings {
    fewer(journaled::sparing(), [Visitor::ReaderAt(StepKind::WaitBegin), Visitor::WriterAfter(700)])
}

fn fewer(settings: Settings, visitors: [Visitor; 2]) -> Settings {
    let visitors = visitors.to_vec();
    Settings { images_per_step_max: 2, images_per_op_max: 8, nested_images_max: 1, visitors, ..settings }
}

/// The same visitors, no visitor, and writers in the middle of marking.
fn for_long(few: Settings) -> Settings {
    let further = [Visitor::Nobody, Visitor::WriterAfter(700), Visitor::WriterAfter(4_000)];
    let visitors = few.visitors.iter().copied().chain(further).collect();
    Settings { images_per_step_max: 4, images_per_op_max: 60, nested_images_max: 2, visitors, ..few }
}

fn all_survive() -> Counts {
    let (memory, journal) = (for_long(few()), for_long(few_on_a_journal()));
    let scripts = [large(), first(), without_space()];
    let mut counts = passes::<Crashed>(&scripts, &memory);
    counts += passes::<InOrder>(&[large_in_order(), without_space()], &memory);
    counts += passes::<Journal>(&scripts, &journal);
    counts += passes::<Journal<WithOrder>>(&[large_in_order()], &journal);
    counts += passes::<Deferring<NoOrder>>(&scripts, &journal);
    counts
}

#[test]
fn they_survive_on_memory() {
    let counts = passes::<Crashed>(&[first()], &few());
    assert!(
        counts.steps > 2_000 && counts.images > Extent::pick(2, 5) && counts.visits > Extent::pick(0, 2),
        "{counts:?}"
    );
}

#[test]
fn they_survive_in_order() {
    let counts = passes::<InOrder>(&[large_in_order()], &few());
    assert!(counts.images > Extent::pick(2, 8), "{counts:?}");
}

#[test]
fn they_survive_on_a_journal() {
    assert!(record_bytes(KEY_COUNT as usize) > small_journal().segment_bytes.max(small_journal().block_bytes));
    let counts = passes::<Journal>(&[large(), first()], &few_on_a_journal());
    assert!(counts.images > Extent::pick(2, 8), "{counts:?}");
}

#[test]
fn operations_survive_deferred_results() {
    let counts = passes::<Deferring<NoOrder>>(&[large(), first()], &few_on_a_journal());
    assert!(counts.images > Extent::pick(2, 8), "{counts:?}");
}

#[test]
#[ignore = "many minutes"]
fn batch_without_space_changes_nothing() {
    let alone = |few| Settings { images_per_op_max: 4, visitors: vec![Visitor::Nobody], ..few };
    passes::<Crashed>(&[without_space()], &alone(few()));
    passes::<Journal>(&[without_space()], &alone(few_on_a_journal()));
}

#[test]
fn broken_ones_are_caught() {
    let alone = |few| Settings { images_per_op_max: 60, visitors: vec![Visitor::Nobody], ..few };
    // A missing fence shows only at one or two of thousands of steps: the tests of `engine` examine those.
    let violation = caught(index::canary::HALF_BATCH, Model::Line, &[large()], alone(few()));
    assert!(matches!(violation.op, Op::Batch(_)), "caught at another operation: {violation}");
    let violation = journaled::caught(index::canary::HALF_BATCH, &[large()], alone(few_on_a_journal()));
    assert!(matches!(violation.op, Op::Batch(_)), "caught at another operation: {violation}");
}

#[test]
#[ignore = "many minutes"]
fn they_survive_for_long() {
    let counts = all_survive();
    assert!(counts.images > 1_000, "{counts:?}");
}
