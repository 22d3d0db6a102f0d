//! Batches crashed at every step and read between every two: a batch is visible completely or not at all.

use engine::Hasher;
use index::partitioned_hash::layout::{Home, LINE_ENTRY_COUNT};
use pmem_sim::{Model, StepKind};
use testkit::{Op, Problem, Script, Settings, Shape, Visitor};

use crate::scripts::{EXTENT_BYTES, delete, put, up_to_a_split};
use crate::subject::{Crashed, HASH_SEED, InOrder};
use crate::{caught, journaled, passes, sampled_images, settings, sparing};

/// Returns a change: a key with its new value, or with `None` for a delete.
fn change(key: impl AsRef<[u8]>, value: Option<&[u8]>) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.as_ref().to_vec(), value.map(<[u8]>::to_vec))
}

pub(crate) fn batch<K: AsRef<[u8]>, V: AsRef<[u8]>>(changes: impl IntoIterator<Item = (K, Option<V>)>) -> Op {
    let changes = changes.into_iter().map(|(key, value)| change(key, value.as_ref().map(AsRef::as_ref)));
    Op::Batch(changes.collect())
}

/// Inserts, replacements and deletes in one batch; one key twice; an empty change; absent keys.
pub(crate) fn several_changes_at_once() -> Script {
    let ops = [
        batch([("a", Some("1")), ("b", Some("2"))]),
        batch([("a", Some(&"3".repeat(100)[..])), ("b", None), ("c", Some("4")), ("no such key", None)]),
        put("a", "5"),
        batch([("c", Some("6")), ("c", None), ("b", Some("7")), ("b", Some("8"))]),
        batch([("no such key", None::<&str>)]),
        batch([("a", None), ("b", None::<&str>)]),
    ];
    Script::fresh(70, ops)
}

/// Writes after a batch, while the batch word may still be set: writes of the same keys by a later batch, and by single
/// operations.
fn changed_again() -> Script {
    let ops = [
        batch([("a", Some("1")), ("b", Some("2"))]),
        put("a", [3; 40]),
        delete("b"),
        batch([("a", Some("4")), ("b", Some("5"))]),
        Op::Reopen,
        put("b", "6"),
        batch([("a", None), ("b", Some("7"))]),
    ];
    Script::fresh(71, ops)
}

/// So many keys that some share a pair and some overflow to its partner or the stash. The batch finds no space and
/// splits a segment.
fn around_a_split() -> Script {
    let setup = up_to_a_split();
    let next = setup.len() as u32;
    let new = (next..next + 12).map(|i| (i.to_be_bytes(), Some("w")));
    let old = (0..8u32).map(|i| (i.to_be_bytes(), (i % 2 == 0).then_some("x")));
    let tail = [batch(new.chain(old)), Op::Reopen, batch((0..4u32).map(|i| (i.to_be_bytes(), Some("y"))))];
    Script::after(72, setup, tail)
}

/// Keys of one home line. The line is full before a batch inserts more of them; then some are replaced and some
/// deleted.
fn in_one_line() -> Script {
    const KEY_COUNT: usize = 6;
    let home = |number: u32| Home::of(Hasher::new(HASH_SEED).signature(&number.to_be_bytes()));
    let numbers = (0..).filter(|&number| home(number) == home(0)).take(KEY_COUNT);
    let keys: Vec<_> = numbers.map(u32::to_be_bytes).collect();
    let (first, more) = keys.split_at(LINE_ENTRY_COUNT as usize);
    let ops = [
        batch(more.iter().map(|key| (key, Some("2")))),
        batch(keys.iter().enumerate().map(|(i, key)| (key, (i % 2 == 0).then_some("3")))),
        batch(keys.iter().map(|key| (key, Some("4")))),
    ];
    Script::after(75, first.iter().map(|key| put(key, "1")), ops)
}

/// A batch that is abandoned because a segment is full, after an entry was chosen in another segment, outside its full
/// home line. The second writer's key has the same home line.
fn given_up() -> Script {
    /// The entries of a pair and the stash.
    const PAIR_ENTRY_COUNT: usize = 64;
    let hasher = &Hasher::new(HASH_SEED);
    let home = |key: &[u8]| Home::of(hasher.signature(key));
    let is_high = |key: &[u8]| hasher.signature(key) >> 63 == 1;
    let numbers = || (0..).map(u32::to_be_bytes);
    let line = Home { pair: 1, line: 0 };
    let crowd = numbers().filter(|key| home(key).pair == 0).take(PAIR_ENTRY_COUNT);
    let mut low = numbers().filter(|key| home(key) == line && !is_high(key));
    let fill: Vec<_> = low.by_ref().take(LINE_ENTRY_COUNT as usize).collect();
    let high = numbers().filter(|key| home(key).pair == 2 && is_high(key)).take(PAIR_ENTRY_COUNT);
    let rival = Script::rivals().find(|key| home(key) == line && !is_high(key)).expect("there are many");
    let op = batch(low.take(1).chain(high).map(|key| (key, Some("2"))));
    Script::after(77, crowd.chain(fill).map(|key| put(key, "1")), [op]).with_rival(rival)
}

/// Batches for which there is no space, and one for which there is.
fn where_it_is_full() -> Script {
    let large = |fill: u8, count: u8| batch((0..count).map(move |i| ([b'k', i], Some(vec![fill; EXTENT_BYTES]))));
    let ops = [large(1, 3), large(2, 8), batch([([b'k', 0], None), ([b's', 0], Some("small"))]), large(3, 8)];
    Script::after(73, [Op::Full], ops)
}

/// Batches as the server's transactions write them: changes of several commands, with keys that expire and are renamed,
/// made persistent or replaced; with restarts, and with the reaper running in between.
fn transactions() -> Script {
    /// A key and its new value with an expiry time.
    type Change<'a> = (&'a str, Option<(&'a str, Option<u64>)>);
    let until = |&(key, new): &Change<'_>| (key.into(), new.map(|(value, at_ms)| (value.into(), at_ms)));
    let batch = |changes: &[Change<'_>]| Op::BatchExpiring(changes.iter().map(until).collect());
    let ops = [
        batch(&[("counter", Some(("1", None))), ("session", Some(("ann", Some(2000))))]),
        batch(&[("session", None), ("renamed", Some(("ann", Some(2000)))), ("counter", Some(("2", None)))]),
        Op::Reopen,
        batch(&[("renamed", Some(("ann", None))), ("short", Some(("x", Some(3000)))), ("counter", None)]),
        Op::At(3000),
        batch(&[("short", Some(("y", Some(5000)))), ("other", Some(("z", Some(4000))))]),
        Op::Settle,
        Op::At(4000),
        Op::Settle,
        batch(&[("renamed", None), ("short", None), ("other", Some(("1", None)))]),
    ];
    Script::fresh(76, ops)
}

/// Batches while the store keeps an ordered index, and after it was reopened without one.
fn in_order() -> Script {
    let ops = [
        batch([("b", Some("1")), ("a", Some("2"))]),
        Op::Scan,
        batch([("b", Some("3")), ("a", None), ("c", Some("4"))]),
        Op::Scan,
        Op::Clear,
        batch([("d", Some("5")), ("c", None)]),
        Op::Scan,
        Op::Reopen,
        batch([("d", None), ("e", Some("6"))]),
    ];
    Script::fresh(74, ops)
}

/// Batches with conditions on keys that they write and on other keys; some conditions hold and some do not.
fn conditional() -> Vec<Script> {
    let all = |changes: &[(&str, Option<&str>)]| {
        changes.iter().map(|(key, value)| change(key, value.map(str::as_bytes))).collect()
    };
    let if_so = |expected: &[_], changes: &[_]| Op::BatchIf { expected: all(expected), changes: all(changes) };
    let ops = [
        put("a", "1"),
        if_so(&[("a", Some("1"))], &[("b", Some("2"))]),
        if_so(&[("a", Some("1")), ("b", None)], &[("a", None)]),
        if_so(&[("a", Some("1")), ("b", Some("2"))], &[("a", Some("3")), ("b", None)]),
        delete("a"),
        if_so(&[("a", None)], &[("c", Some("4"))]),
        if_so(&[("b", Some("2"))], &[]),
        if_so(&[("c", Some("4")), ("a", None)], &[]),
    ];
    let shape = Shape { batches: true, conditions: true, ..Shape::small(10) };
    [Script::fresh(78, ops)].into_iter().chain((79..81).map(|seed| Script::seeded(seed, &shape))).collect()
}

#[test]
fn those_with_conditions_survive() {
    passes::<Crashed>(&conditional(), &sampled_images());
    passes::<InOrder>(&conditional()[..1], &sampled_images());
    let counts = journaled::passes(&conditional(), &journaled::settings());
    assert!(counts.reach(100, 100, 50), "{counts:?}");
}

/// Readers at the steps at which the later batches of a script are marked, committed and finished.
fn late() -> Settings {
    let readers = (12..36).step_by(4).map(Visitor::ReaderAfter);
    let always = [Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways];
    let visitors = always.into_iter().chain(readers).collect();
    Settings { visitors, images_per_op_max: 500, ..settings() }
}

#[test]
fn they_survive_whole_or_not_at_all() {
    let counts = passes::<Crashed>(&[several_changes_at_once(), changed_again()], &late());
    assert!(counts.reach(1000, 1000, 500), "{counts:?}");
}

#[test]
fn they_survive_with_keys_that_expire() {
    passes::<Crashed>(&[transactions()], &sampled_images());
    passes::<InOrder>(&[transactions()], &sampled_images());
    let violation = caught(index::canary::HALF_BATCH, Model::Line, &[transactions()], sparing());
    assert!(matches!(violation.op, Op::BatchExpiring(_)), "caught at another operation: {violation}");
}

#[test]
fn they_survive_in_order() {
    passes::<InOrder>(&[in_order()], &sampled_images());
}

#[test]
fn they_survive_in_one_line() {
    passes::<Crashed>(&[in_one_line()], &sparing());
    let violation = caught(index::canary::OVERFLOW_BIT_LATE, Model::Line, &[in_one_line()], sparing());
    assert!(matches!(violation.op, Op::Batch(_)), "caught at another operation: {violation}");
}

#[test]
fn they_survive_a_split() {
    let counts = passes::<Crashed>(&[around_a_split()], &sampled_images());
    assert!(counts.reach(100, 0, 0), "{counts:?}");
}

/// A writer that relies on lines that an abandoned batch flushed has ordered these flushes.
#[test]
fn abandoned_batch_keeps_others_data() {
    let at_marks = vec![Visitor::WriterAt(StepKind::CompareExchange)];
    // Everything pending is lost, or nothing, at each of some hundred steps.
    let few = Settings { images_per_step_max: 2, images_per_op_max: 2000, nested_images_max: 0, ..sparing() };
    let settings = Settings { visitors: at_marks, models: vec![Model::Line], ..few };
    passes::<Crashed>(&[given_up()], &settings);
    let violation = caught(index::canary::WAYS_MARKED_EARLY, Model::Line, &[given_up()], settings);
    assert!(violation.to_string().contains("rival"), "{violation}");
}

#[test]
#[ignore = "many minutes"]
fn they_survive_for_long() {
    passes::<Crashed>(&[transactions(), around_a_split()], &sparing());
    passes::<InOrder>(&[transactions(), in_order(), around_a_split()], &sparing());
}

#[test]
fn batch_without_space_changes_nothing() {
    passes::<Crashed>(&[where_it_is_full()], &sparing());
    passes::<InOrder>(&[where_it_is_full()], &sparing());
}

#[test]
fn broken_batches_are_caught() {
    let settings = Settings { visitors: vec![Visitor::Nobody, Visitor::ReaderAlways], ..settings() };
    for canary in [
        index::canary::HALF_BATCH,
        index::canary::BATCH_BEFORE_RECORD,
        index::canary::BATCH_BEFORE_ENTRIES,
        index::canary::BATCH_FORGOTTEN_EARLY,
        index::canary::RECOVERED_BATCH_FORGOTTEN_EARLY,
        index::canary::BATCH_REPLAYED,
        index::canary::UNSETTLED_READ,
    ] {
        let violation = caught(canary, Model::Line, &[several_changes_at_once()], settings.clone());
        // A reader also meets unsettled data of single writes.
        let of_batches_alone = canary != index::canary::UNSETTLED_READ;
        assert!(!of_batches_alone || matches!(violation.op, Op::Batch(_)), "caught at another operation: {violation}");
    }
}

/// Marks also keep readers from seeing half of a batch.
#[test]
fn half_a_batch_is_seen_by_readers() {
    let settings = Settings { visitors: vec![Visitor::ReaderAlways], ..settings() };
    let violation = caught(index::canary::HALF_BATCH, Model::Line, &[changed_again()], settings);
    assert!(matches!(violation.problem, Problem::Reader(_)), "{violation}");
}
