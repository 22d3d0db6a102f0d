//! Compares `docs/format/segment.md` with the index.

use engine::{Engine, Hasher};
use heap::layout::SEGMENT_BYTES;
use heap::{Class, Place, PlaceKind};
use index::Position;
use index::partitioned_hash::layout::{
    BUCKET_LINE_COUNT, DEPTH_MAX, Geometry, Home, LINE_ENTRY_COUNT, OverflowPath, PAIR_COUNT, PAIR_LINE_COUNT,
    SEGMENT_ENTRY_COUNT, SEGMENT_LINE_COUNT, STASH_LINE_COUNT, SegmentHeader, State, entry_lines, record, slot,
    stash_line,
};
use pmem::{LINE_BYTES, Offset, seal};

use crate::format_docs::fields::Fields;
use crate::format_docs::pages::{assert_names, table};
use crate::format_docs::region::{head, payload};
use crate::format_docs::store::{PARAMETERS, Store, key};

const PAGE: &str = "segment";

#[test]
fn sizes_match_the_page() {
    let rows = table(PAGE, "Sizes");
    let sizes = [
        ("lines of a segment", SEGMENT_LINE_COUNT),
        ("entries of a line", LINE_ENTRY_COUNT),
        ("lines of a bucket", BUCKET_LINE_COUNT),
        ("lines of a pair", PAIR_LINE_COUNT),
        ("pairs of a segment", PAIR_COUNT),
        ("lines of the stash", STASH_LINE_COUNT),
        ("entries of a segment", SEGMENT_ENTRY_COUNT),
        ("directory bits at most", DEPTH_MAX.into()),
    ];
    assert_names(&rows, &sizes.map(|(name, _)| name));
    for (row, (name, size)) in rows.iter().zip(sizes) {
        assert_eq!(row.number("value"), size, "{name}");
    }
}

/// Returns the parts of a segment.
pub(crate) fn segment() -> Fields {
    Fields::bytes(PAGE, "Segment", SEGMENT_BYTES).named(&["header", "stash", "pairs"])
}

/// Returns the words of a segment's header.
pub(crate) fn header() -> Fields {
    Fields::bytes(PAGE, "Segment header", LINE_BYTES).named(&["state word", "prefix", "next", "zero"])
}

/// Returns the bits of a segment's state word.
pub(crate) fn state_word() -> Fields {
    Fields::bits(PAGE, "State word").named(&["state", "depth", "partition", "generation", "zero", "check"])
}

/// Returns the documented name of a state.
pub(crate) fn state_name(word: u64) -> String {
    let states = table(PAGE, "Segment states");
    let state = states.iter().find(|row| row.number("value") == state_word().of_word(word, "state"));
    state.expect("the state is documented").text("name").to_owned()
}

#[test]
fn parts_of_a_segment() {
    let (segment, at) = (segment(), Offset(SEGMENT_BYTES));
    assert_eq!(stash_line(at, 0).0 - at.0, segment.start("stash"));
    assert_eq!(segment.length("stash"), STASH_LINE_COUNT * LINE_BYTES);
    let first = Home { pair: 0, line: 0 };
    assert_eq!(first.offset(at).0 - at.0, segment.start("pairs"));
    assert_eq!(segment.length("pairs"), PAIR_COUNT * PAIR_LINE_COUNT * LINE_BYTES);
    assert_eq!(entry_lines(at).count() as u64 * LINE_BYTES, segment.length("stash") + segment.length("pairs"));
}

#[test]
fn state_words() {
    assert_names(&table(PAGE, "Segment states"), &["pending", "live", "chained", "dead"]);
    let states =
        [(State::Pending, "pending"), (State::Live, "live"), (State::Chained, "chained"), (State::Dead, "dead")];
    for (state, name) in states {
        let header = SegmentHeader { state, partition: 0xAB, depth: 21, prefix: 5, generation: 0xCDEF };
        let word = header.state_word();
        assert_eq!(state_name(word), name);
        let fields = state_word();
        let found = ["depth", "partition", "generation", "zero"].map(|field| fields.of_word(word, field));
        assert_eq!(found, [21, 0xAB, 0xCDEF, 0]);
        payload(word);
        assert_eq!(SegmentHeader::from_words(word, seal(5)), Some(header));
    }
}

/// Returns the words of a line.
pub(crate) fn line() -> Fields {
    let names = ["signature", "position"].map(|name| [0, 1, 2, 3].map(|i| format!("{name} {i}"))).concat();
    Fields::bytes(PAGE, "Line", LINE_BYTES).named(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn entries_of_a_line() {
    let (line, at) = (line(), Offset(4096));
    for i in 0..4 {
        let slot = slot(at, i);
        assert_eq!(slot.signature.0 - at.0, line.start(&format!("signature {i}")));
        assert_eq!(slot.position.0 - at.0, line.start(&format!("position {i}")));
    }
}

/// Returns the bits of a position word.
pub(crate) fn position() -> Fields {
    let names = ["offset", "fresh", "deleted", "batch", "extent", "overflow", "class", "reserved"];
    Fields::bits(PAGE, "Position word").named(&names)
}

#[test]
fn position_words() {
    let fields = position();
    let slot = |class| Place { offset: Offset(0x1234_5678_9AB0), kind: PlaceKind::Slot(class) };
    let class = Class::from_index(103).expect("the last class");
    let word = Position::of(slot(class)).word();
    assert_eq!((fields.of_word(word, "offset"), fields.of_word(word, "class")), (0x1234_5678_9AB0, 103));
    let extent = Position::of(Place { offset: Offset(64), kind: PlaceKind::Extent });
    assert_eq!(extent.word(), 64 | fields.mask("extent"));
    let marks = [("fresh", Position::EMPTY.fresh()), ("deleted", Position::EMPTY.deleted())];
    for (name, marked) in marks.into_iter().chain([("overflow", Position::EMPTY.overflow())]) {
        assert_eq!(marked.word(), fields.mask(name), "{name}");
    }
    let unused = fields.mask("batch") | fields.mask("reserved");
    assert!(Position::from_word(unused).is_empty());
    assert_eq!(Position::from_word(unused).item(), Position::EMPTY);
}

#[test]
fn signatures_match_the_page() {
    for row in table(PAGE, "Signature") {
        let hasher = Hasher::new(row.number("seed"));
        assert_eq!(hasher.signature(row.text("key").as_bytes()), row.number("signature"), "{}", row.text("key"));
    }
}

#[test]
fn homes_match_the_page() {
    let geometry = Geometry::new(32).expect("a power of two");
    for row in table(PAGE, "Home examples") {
        let signature = row.number("signature");
        let home = Home { pair: row.number("pair"), line: row.number("line") };
        assert_eq!(Home::of(signature), home);
        assert_eq!(geometry.partition(signature) as u64, row.number("partition of 32"));
        assert_eq!(geometry.prefix(signature, 5), row.number("prefix of depth 5"));
    }
}

#[test]
fn overflow_paths_match_the_page() {
    let rows = table(PAGE, "Ways");
    assert_names(&rows, &["bucket", "partner", "further"]);
    let values = rows.iter().map(|row| row.number("value"));
    assert!(values.eq([OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further].map(|way| way as u64)));
    assert!(rows.iter().all(|row| row.text("overflow bit of") == format!("position {}", row.number("value"))));
    let (home, at) = (Home { pair: 0, line: 2 }, Offset(0));
    let lines = |way| home.lines(way, at).map(|line| line.0 / LINE_BYTES).collect::<Vec<_>>();
    let found = [lines(OverflowPath::Bucket), lines(OverflowPath::Partner), lines(OverflowPath::Further)];
    assert_eq!(found, [vec![11, 8, 9], vec![14, 15, 12, 13], vec![1, 2, 3, 4, 5, 6, 7]]);
}

/// Returns the words of a partition's split record.
fn split_record() -> Fields {
    Fields::bytes(PAGE, "Split record", LINE_BYTES).named(&["old", "zero half", "one half", "commit", "zero"])
}

#[test]
fn split_records() {
    let fields = split_record();
    let words = [
        ("old", record::OLD_BYTES),
        ("zero half", record::ZERO_BYTES),
        ("one half", record::ONE_BYTES),
        ("commit", record::COMMIT_BYTES),
    ];
    for (name, at) in words {
        assert_eq!(fields.start(name), at, "{name}");
    }
    let store = Store::new(&heap::Parameters { partition_count: 1, ..PARAMETERS });
    let count =
        (0..2_000).take_while(|&i| store.0.stats().figure("split_count").unwrap() == 0.0 && put(&store, i)).count();
    assert!(count < 2_000, "a segment was split");
    let record = head().start("engine area");
    fields.assert_zeroes(store.bytes(record, LINE_BYTES));
    let [old, zero, one] =
        ["old", "zero half", "one half"].map(|name| payload(store.word(record + fields.start(name))));
    assert_eq!(store.word(record + fields.start("commit")), 0);
    let state = |segment| store.word(segment + header().start("state word"));
    assert_eq!([old, zero, one].map(|segment| state_name(state(segment))), ["dead", "live", "live"]);
    let prefix = |segment| payload(store.word(segment + header().start("prefix")));
    assert_eq!([prefix(zero), prefix(one)], [0, 1]);
    assert!([zero, one].iter().all(|&half| state_word().of_word(state(half), "depth") == 1));
}

fn put(store: &Store, i: u32) -> bool {
    store.put(&key(i), b"v");
    true
}
