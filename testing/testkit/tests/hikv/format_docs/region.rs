//! Compares `docs/format/region.md` and `versions.md` with the heap.

use engine::prelude::*;
use heap::layout::{
    BATCH_WORDS, ENGINE_AREA, ENGINE_AREA_BYTES, FORMAT_MARK, FORMAT_UNFINISHED, GENERATION, HIGH_WATER_MARK, IMAGE,
    MADE_FOR, PARTITION_COUNT_MAX, REGION_BYTES_MAX, SEGMENT_BYTES, SEGMENTS_CHUNK_SLOTS, SEGMENTS_CHUNK_UNITS,
    SNAPSHOT_EPOCH, SUPERBLOCK_COPIES, UNIT_BYTES,
};
use heap::{Class, EngineNumber, FEATURE_IMAGE, FEATURES_KNOWN, FORMAT_MAJOR, FORMAT_MINOR, MAGIC};
use pmem::{LINE_BYTES, crc32c, seal};

use crate::format_docs::fields::Fields;
use crate::format_docs::pages::{assert_names, table};
use crate::format_docs::store::{EXTENT_VALUE_BYTES, PARAMETERS, Store};

const PAGE: &str = "region";

#[test]
fn sizes_match_the_page() {
    let rows = table(PAGE, "Sizes");
    let sizes = [
        ("line bytes", LINE_BYTES),
        ("unit bytes", UNIT_BYTES),
        ("region bytes at most", REGION_BYTES_MAX),
        ("partitions at most", PARTITION_COUNT_MAX.into()),
        ("segment bytes", SEGMENT_BYTES),
        ("units of a chunk of segments", SEGMENTS_CHUNK_UNITS.into()),
        ("segments of a chunk", SEGMENTS_CHUNK_SLOTS.into()),
        ("size classes", Class::COUNT as u64),
        ("slot bytes at most", Class::BYTES_MAX),
    ];
    assert_names(&rows, &sizes.map(|(name, _)| name));
    for (row, (name, size)) in rows.iter().zip(sizes) {
        assert_eq!(row.number("value"), size, "{name}");
    }
}

#[test]
fn versions_match_the_page() {
    let rows = table("versions", "Versions");
    assert_names(&rows, &["major", "minor", "features"]);
    let values = rows.iter().map(|row| row.number("value"));
    assert!(values.eq([u64::from(FORMAT_MAJOR), FORMAT_MINOR.into(), FEATURES_KNOWN.into()]));
}

/// Returns the head's fields, after comparing their offsets with the heap's.
pub(crate) fn head() -> Fields {
    let rows = table(PAGE, "Head");
    let [a, b] = SUPERBLOCK_COPIES;
    let words = [FORMAT_MARK, HIGH_WATER_MARK, GENERATION, IMAGE, SNAPSHOT_EPOCH, BATCH_WORDS];
    let ends = [MADE_FOR, MADE_FOR.plus(LINE_BYTES), ENGINE_AREA];
    let starts = [a, b].into_iter().chain(words).chain(ends);
    let names = ["superblock, copy A", "superblock, copy B", "format mark", "high-water mark", "generation", "image"];
    let names: Vec<&str> =
        names.into_iter().chain(["snapshot epoch", "batch words", "made for", "zero", "engine area", "zero"]).collect();
    assert_names(&rows, &names);
    for (row, start) in rows.iter().zip(starts) {
        assert_eq!(row.number("offset"), start.0, "{}", row.text("name"));
    }
    Fields::bytes(PAGE, "Head", UNIT_BYTES)
}

/// Returns the payload of a sealed word, by the documented bits.
pub(crate) fn payload(word: u64) -> u64 {
    let fields = Fields::bits(PAGE, "Sealed words").named(&["payload", "check"]);
    let payload = fields.of_word(word, "payload");
    let check = u64::from(crc32c(0x5EA1, &payload.to_le_bytes())) & 0xFFFF;
    assert_eq!(fields.of_word(word, "check"), check, "the word {word:#x} is not sealed");
    payload
}

#[test]
fn sealed_words() {
    for row in table(PAGE, "Sealed examples") {
        assert_eq!(seal(row.number("payload")), row.number("word"));
        assert_eq!(payload(row.number("word")), row.number("payload"));
    }
}

#[test]
fn the_head_of_a_store() {
    let (fields, store) = (head(), Store::filled());
    let head = store.bytes(0, UNIT_BYTES);
    fields.assert_zeroes(head);
    for name in ["format mark", "high-water mark", "generation", "image", "made for"] {
        assert!(fields.slice(head, name)[8..].iter().all(|&byte| byte == 0), "the rest of the line of '{name}'");
    }
    let word = |name| store.word(fields.start(name));
    assert_eq!((word("format mark"), payload(word("generation")), word("image")), (0, 0, 0));
    assert_eq!(payload(word("high-water mark")) * UNIT_BYTES, store.0.stats().used_bytes);
    assert_eq!(payload(word("made for")), 3, "the simulated memory survives a loss of power");
    assert_eq!(FORMAT_UNFINISHED.to_le_bytes(), *b"hikv new");
    assert_eq!(fields.length("engine area"), ENGINE_AREA_BYTES);
    assert_eq!(ENGINE_AREA_BYTES, u64::from(PARTITION_COUNT_MAX) * LINE_BYTES);
    store.0.clear().expect("there is space");
    assert_eq!(payload(word("generation")), 1);
}

pub(crate) fn superblock_fields() -> Fields {
    let names = ["magic", "major", "minor", "engine", "uuid", "hash seed", "partition count", "segment bytes"];
    let more = ["unit bytes", "features", "region bytes", "sequence", "checksum", "zero"];
    let names: Vec<&str> = names.into_iter().chain(more).collect();
    Fields::bytes(PAGE, "Superblock", 4096).named(&names)
}

#[test]
fn superblock_matches_the_page() {
    let fields = superblock_fields();
    let store = Store::new(&PARAMETERS);
    let [a, b] = SUPERBLOCK_COPIES.map(|copy| store.bytes(copy.0, 4096));
    assert_eq!(a, b);
    fields.assert_zeroes(a);
    assert_eq!((fields.slice(a, "magic"), fields.slice(a, "uuid")), (&MAGIC[..], &PARAMETERS.uuid[..]));
    let numbers = [
        ("major", FORMAT_MAJOR.into()),
        ("minor", FORMAT_MINOR.into()),
        ("engine", EngineNumber::HIKV.0.into()),
        ("hash seed", PARAMETERS.hash_seed),
        ("partition count", PARAMETERS.partition_count.into()),
        ("segment bytes", SEGMENT_BYTES),
        ("unit bytes", UNIT_BYTES),
        ("features", FEATURE_IMAGE.into()),
        ("region bytes", PARAMETERS.region_bytes),
        ("sequence", 1),
        ("checksum", crc32c(0, &a[..fields.start("checksum") as usize]).into()),
    ];
    for (name, number) in numbers {
        assert_eq!(fields.number(a, name), number, "{name}");
    }
}

#[test]
fn the_magic_is_written_as_documented() {
    let text = table(PAGE, "Superblock").into_iter().find(|row| row.text("name") == "magic");
    let text = text.expect("the magic is documented").text("meaning").to_owned();
    let digits: String = MAGIC.iter().map(|byte| format!("{byte:02x} ")).collect();
    assert!(text.starts_with(&format!("`{}`", digits.trim())), "{text}");
}

/// A chunk, read by the documented bits.
pub(crate) struct Chunk {
    pub(crate) kind: String,
    pub(crate) start: u64,
    pub(crate) units: u64,
    pub(crate) class: u8,
    pub(crate) first_slot_at: u64,
}

/// Returns every chunk below the high-water mark.
pub(crate) fn chunks(store: &Store) -> Vec<Chunk> {
    let fields = Fields::bits(PAGE, "Chunks").named(&["units", "class", "kind", "zero", "check"]);
    let kinds = table(PAGE, "Chunk kinds");
    let mark = payload(store.word(head().start("high-water mark")));
    let (mut unit, mut chunks) = (1, Vec::new());
    while unit < mark {
        let word = store.word(unit * UNIT_BYTES);
        payload(word);
        assert_eq!(fields.of_word(word, "zero"), 0);
        let kind = kinds.iter().find(|kind| kind.number("value") == fields.of_word(word, "kind"));
        let kind = kind.unwrap_or_else(|| panic!("the chunk at unit {unit} is of an undocumented kind"));
        let first_slot_at = if kind.text("first slot at").is_empty() { 0 } else { kind.number("first slot at") };
        chunks.push(Chunk {
            kind: kind.text("name").to_owned(),
            start: unit * UNIT_BYTES,
            units: fields.of_word(word, "units"),
            class: fields.of_word(word, "class") as u8,
            first_slot_at,
        });
        unit += fields.of_word(word, "units");
    }
    assert_eq!(unit, mark, "chunks are contiguous up to the high-water mark");
    chunks
}

#[test]
fn chunks_of_every_kind() {
    assert_names(&table(PAGE, "Chunk kinds"), &["free", "slab", "segments", "extent"]);
    let chunks = chunks(&Store::filled());
    let of_kind = |kind| chunks.iter().filter(move |chunk| chunk.kind == kind);
    let extent_units = (64 + 16 + b"extent".len() + EXTENT_VALUE_BYTES).div_ceil(UNIT_BYTES as usize) as u64;
    assert!(of_kind("extent").map(|chunk| chunk.units).eq([extent_units]));
    assert!(of_kind("free").map(|chunk| chunk.units).eq([extent_units]));
    assert!(of_kind("segments").all(|chunk| chunk.units == u64::from(SEGMENTS_CHUNK_UNITS)));
    assert!(of_kind("slab").all(|chunk| chunk.units == if slot_bytes(chunk) > 32_768 { 32 } else { 4 }));
    let large = of_kind("slab").filter(|chunk| slot_bytes(chunk) > 32_768).count();
    assert!(large == 1 && of_kind("slab").count() > 20 && of_kind("segments").count() > 0);
}

pub(crate) fn slot_bytes(slab: &Chunk) -> u64 {
    Class::from_index(slab.class).expect("a slab has a class").bytes()
}

#[test]
fn size_classes() {
    for row in table(PAGE, "Size classes") {
        let class = Class::from_index(row.number("class") as u8).expect("the class exists");
        assert_eq!(class.bytes(), row.number("slot bytes"));
        assert_eq!(Class::for_bytes(row.number("slot bytes")), Some(class));
    }
}
