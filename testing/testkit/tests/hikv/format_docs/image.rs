//! Compares `docs/format/image.md` with the engine, and reads clean images with a reader written only from the pages.

use std::collections::HashMap;

use engine::{Early, Engine};
use engine_hikv::image::layout::{FLAG_ORDER, HEADER_BYTES, MAGIC, VERSION};
use engine_hikv::{HiKv, Ordered};
use heap::layout::UNIT_BYTES;
use index::partitioned_hash::SEGMENT_COUNT_WORDS;
use pmem::crc32c;
use pmem_os::HostDram;

use crate::format_docs::fields::Fields;
use crate::format_docs::item::Reader;
use crate::format_docs::region::{chunks, head, payload, slot_bytes};
use crate::format_docs::segment;
use crate::format_docs::store::{KEY_COUNT, Store};

const PAGE: &str = "image";
/// Items of [`Store::filled`] in slots; one more is in an extent.
const SLOT_ITEM_COUNT: u64 = KEY_COUNT as u64 + 1;

/// Returns a store that was closed with its keys in order, and opened without a change.
fn closed() -> Store {
    let Store(engine) = Store::filled();
    let medium = engine.medium().clone();
    let engine = engine.keeping_order(Ordered::new(1, HostDram));
    engine.ordered().expect("it keeps order").catch_up(Early::Wait).expect("there is memory");
    engine.close().expect("there is space");
    drop(engine);
    Store(HiKv::open(medium, HostDram).expect("it was closed"))
}

/// The image that the head names, read by the documented offsets.
struct Image<'a> {
    store: &'a Store,
    fields: Fields,
    start: u64,
}

impl<'a> Image<'a> {
    fn named(store: &'a Store) -> Image<'a> {
        let word = store.word(head().start("image"));
        let unit = Fields::bits(PAGE, "Image word").of_word(word, "unit");
        let extent = chunks(store).into_iter().find(|chunk| chunk.start == unit * UNIT_BYTES);
        let extent = extent.expect("the image word names a chunk");
        assert_eq!(extent.kind, "extent");
        Image { store, fields: header(), start: extent.start + extent.first_slot_at }
    }

    fn header(&self) -> &'a [u8] {
        self.store.bytes(self.start, HEADER_BYTES as u64)
    }

    fn number(&self, name: &str) -> u64 {
        self.fields.number(self.header(), name)
    }

    /// Returns the three lists: free space, segments, order.
    fn lists(&self) -> [&'a [u8]; 3] {
        let word_counts =
            [self.number("free words"), self.number("segments") * SEGMENT_COUNT_WORDS as u64, self.number("keys")];
        let mut at = self.start + HEADER_BYTES as u64;
        word_counts.map(|count| {
            let list = self.store.bytes(at, count * 8);
            at += count * 8;
            list
        })
    }
}

fn header() -> Fields {
    let names = ["magic", "version", "generation", "number", "mark", "segments", "free words", "flags", "keys"];
    let more = ["space checksum", "order checksum", "zero", "checksum"];
    let names: Vec<&str> = names.into_iter().chain(more).collect();
    Fields::bytes(PAGE, "Image header", HEADER_BYTES as u64).named(&names)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

#[test]
fn the_header_of_a_closed_store() {
    let store = closed();
    let image = Image::named(&store);
    image.fields.assert_zeroes(image.header());
    assert_eq!(image.fields.slice(image.header(), "magic"), MAGIC);
    let word_fields = Fields::bits(PAGE, "Image word").named(&["unit", "number", "check"]);
    let word = |name| store.word(head().start(name));
    payload(word("image"));
    let [free, segments, order] = image.lists();
    let checksum_start = image.fields.start("checksum") as usize;
    let numbers = [
        ("version", VERSION.into()),
        ("generation", payload(word("generation"))),
        ("number", word_fields.of_word(word("image"), "number")),
        ("mark", payload(word("high-water mark"))),
        ("flags", FLAG_ORDER.into()),
        ("keys", SLOT_ITEM_COUNT + 1),
        ("space checksum", crc32c(0, &[free, segments].concat()).into()),
        ("order checksum", crc32c(0, order).into()),
        ("checksum", crc32c(0, &image.header()[..checksum_start]).into()),
    ];
    for (name, number) in numbers {
        assert_eq!(image.number(name), number, "{name}");
    }
}

#[test]
fn the_order_of_a_closed_store() {
    let store = closed();
    let [_, _, order] = Image::named(&store).lists();
    let reader = Reader::new(&store);
    let keys: Vec<&[u8]> = words(order).into_iter().map(|position| reader.item(position).0).collect();
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert_eq!(keys.len() as u64, SLOT_ITEM_COUNT + 1);
}

#[test]
fn the_segments_of_a_closed_store() {
    let store = closed();
    let [_, segments, _] = Image::named(&store).lists();
    let mut entry_count = 0;
    for segment in words(segments).chunks(SEGMENT_COUNT_WORDS) {
        assert_eq!(segment::state_name(store.word(segment[0])), "live");
        entry_count += segment[1..].iter().flat_map(|word| (0..4).map(move |i| word >> (16 * i) & 0xFFFF)).sum::<u64>();
    }
    assert_eq!(entry_count, SLOT_ITEM_COUNT + 1);
}

/// Returns the list's bitmaps by the unit of their chunk.
fn bitmaps(free: &[u8]) -> HashMap<u64, Vec<u64>> {
    let (mut words, mut found) = (words(free).into_iter(), HashMap::new());
    while let Some(head) = words.next() {
        let bitmap = words.by_ref().take((head >> 32) as usize).collect();
        assert!(found.insert(head & 0xFFFF_FFFF, bitmap).is_none(), "a chunk is listed twice");
    }
    found
}

#[test]
fn the_free_space_of_a_closed_store() {
    let store = closed();
    let [free, _, order] = Image::named(&store).lists();
    let (mut bitmaps, order) = (bitmaps(free), words(order));
    let mut used_count = 0;
    for chunk in chunks(&store) {
        let listed = bitmaps.remove(&(chunk.start / UNIT_BYTES));
        assert_eq!(listed.is_some(), chunk.kind != "free", "the chunk at {}", chunk.start);
        if chunk.kind != "slab" {
            continue;
        }
        let (slot_bytes, bitmap) = (slot_bytes(&chunk), listed.unwrap_or_default());
        let slot_count = (chunk.units * UNIT_BYTES - chunk.first_slot_at) / slot_bytes;
        let free_count: u64 = bitmap.iter().map(|bits| u64::from(bits.count_ones())).sum();
        used_count += slot_count - free_count;
        let offsets = order.iter().map(|position| segment::position().of_word(*position, "offset"));
        for offset in offsets.filter(|at| (chunk.start..chunk.start + chunk.units * UNIT_BYTES).contains(at)) {
            let slot = (offset - chunk.start - chunk.first_slot_at) / slot_bytes;
            assert_eq!(bitmap[slot as usize / 64] >> (slot % 64) & 1, 0, "the slot at {offset} is in use");
        }
    }
    assert!(bitmaps.is_empty(), "a listed unit is not a chunk");
    assert_eq!(used_count, SLOT_ITEM_COUNT);
}
