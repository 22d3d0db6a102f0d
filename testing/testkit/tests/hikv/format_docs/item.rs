//! Compares `docs/format/item.md` with the engine, using a reader written only from the pages.

use std::collections::HashMap;

use engine::prelude::*;
use engine::{Expiry, Hasher, Limits};
use heap::layout::{SEGMENT_BYTES, SEGMENTS_CHUNK_SLOTS, SUPERBLOCK_COPIES};
use heap::{Class, FEATURE_EXPIRY};
use items::layout::{EXPIRY_BYTES, HEADER_BYTES, Header};
use pmem::{LINE_BYTES, crc32c, seal};

use crate::format_docs::fields::Fields;
use crate::format_docs::pages::{assert_names, table};
use crate::format_docs::region::{chunks, head, payload, superblock_fields};
use crate::format_docs::store::{EXTENT_VALUE_BYTES, KEY_COUNT, LARGE_VALUE_BYTES, PARAMETERS, Store, key, value};
use crate::format_docs::{region, segment};

const PAGE: &str = "item";

fn header() -> Fields {
    let names = ["value length", "key length", "flags", "checksum", "snapshot epoch"];
    Fields::bytes(PAGE, "Item header", HEADER_BYTES as u64).named(&names)
}

fn expiry() -> Fields {
    Fields::bytes(PAGE, "Expiry", EXPIRY_BYTES as u64).named(&["moment"])
}

#[test]
fn limits_match_the_page() {
    let rows = table(PAGE, "Limits");
    assert_names(&rows, &["key bytes at most", "value bytes at most"]);
    let values = rows.iter().map(|row| row.number("value"));
    assert!(values.eq([Limits::KEY_BYTES_MAX as u64, Limits::VALUE_BYTES_MAX]));
}

#[test]
fn headers_match_the_page() {
    let written =
        Header { value_bytes: 0x0102_0304, key_bytes: 0x0506, flags: 0x0708, checksum: 0x090A_0B0C, epoch: 7 };
    let bytes = written.to_bytes();
    let found = ["value length", "key length", "flags", "checksum", "snapshot epoch"];
    let found = found.map(|name| header().number(&bytes, name));
    assert_eq!(found, [0x0102_0304, 0x0506, 0x0708, 0x090A_0B0C, 7]);
}

/// A store, read only by the documented offsets and bits.
pub(crate) struct Reader<'a> {
    store: &'a Store,
    /// The offsets of the live segments by partition, depth and prefix.
    segments: HashMap<(u64, u64, u64), u64>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(store: &'a Store) -> Reader<'a> {
        let generation = payload(store.word(head().start("generation")));
        let slabs = chunks(store).into_iter().filter(|chunk| chunk.kind == "segments");
        let slots = slabs.flat_map(|chunk| {
            (0..u64::from(SEGMENTS_CHUNK_SLOTS)).map(move |i| chunk.start + chunk.first_slot_at + i * SEGMENT_BYTES)
        });
        let (header, fields) = (segment::header(), segment::state_word());
        let mut segments = HashMap::new();
        for at in slots {
            let word = store.word(at + header.start("state word"));
            if word == 0 || segment::state_name(word) != "live" || fields.of_word(word, "generation") != generation {
                continue;
            }
            let prefix = payload(store.word(at + header.start("prefix")));
            segments.insert((fields.of_word(word, "partition"), fields.of_word(word, "depth"), prefix), at);
        }
        Reader { store, segments }
    }

    /// Returns the segment whose prefix the signature has.
    fn segment(&self, signature: u64) -> u64 {
        let partition_bits = PARAMETERS.partition_count.ilog2();
        let partition = signature >> (64 - partition_bits);
        let prefix = |depth: u64| if depth == 0 { 0 } else { signature << partition_bits >> (64 - depth) };
        let found = (0..=26).find_map(|depth| self.segments.get(&(partition, depth, prefix(depth))));
        *found.expect("the live segments cover every prefix")
    }

    /// Returns the lines that may hold an entry, in their order.
    fn lines(&self, signature: u64) -> Vec<u64> {
        let (segment, parts) = (self.segment(signature), segment::segment());
        let pair = segment + parts.start("pairs") + (((signature & 0xFFFF_FFFF) * 31) >> 32) * 512;
        let home = signature & 7;
        let ring = |first: u64, from: u64, count: u64| (0..count).map(move |i| pair + (first + (from + i) % 4) * 64);
        let overflow = |i: u64| {
            let at = pair + home * 64 + segment::line().start(&format!("position {i}"));
            segment::position().of_word(self.store.word(at), "overflow") == 1
        };
        let mut lines = vec![pair + home * 64];
        if overflow(0) {
            lines.extend(ring(home & 4, home + 1, 3));
        }
        if overflow(1) {
            lines.extend(ring(home & 4 ^ 4, home, 4));
        }
        if overflow(2) {
            let stash = segment + parts.start("stash");
            lines.extend((0..parts.length("stash") / LINE_BYTES).map(|i| stash + i * LINE_BYTES));
        }
        lines
    }

    fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.find(key).map(|word| self.item(word).1)
    }

    /// Returns the position of the key's item.
    fn find(&self, key: &[u8]) -> Option<u64> {
        let signature = Hasher::new(PARAMETERS.hash_seed).signature(key);
        let entries = self.lines(signature).into_iter().flat_map(|line| (0..4).map(move |i| (line, i)));
        let mut same = entries.filter_map(|(line, i)| self.entry(line, i)).filter(|entry| entry.0 == signature);
        same.find(|&(_, word)| self.item(word).0 == key).map(|(_, word)| word)
    }

    /// Returns the signature and position of a live entry.
    fn entry(&self, line: u64, i: u64) -> Option<(u64, u64)> {
        let word = |name: String| self.store.word(line + segment::line().start(&name));
        let (signature, position) = (word(format!("signature {i}")), word(format!("position {i}")));
        let fields = segment::position();
        let is_live = fields.of_word(position, "offset") != 0 && fields.of_word(position, "deleted") == 0;
        is_live.then_some((signature, position))
    }

    /// Returns the key and value of the item that a position names.
    pub(crate) fn item(&self, position: u64) -> (&'a [u8], &'a [u8]) {
        let (fields, header) = (segment::position(), header());
        let at = fields.of_word(position, "offset");
        let head = self.store.bytes(at, HEADER_BYTES as u64);
        let [key, value] = ["key length", "value length"].map(|name| header.number(head, name));
        let expiry_bytes = header.number(head, "flags") * expiry().length("moment");
        let bytes = self.store.bytes(at, HEADER_BYTES as u64 + expiry_bytes + key + value);
        if fields.of_word(position, "extent") == 0 {
            let class = Class::from_index(fields.of_word(position, "class") as u8).expect("the class exists");
            assert!(bytes.len() as u64 <= class.bytes(), "the item fits its slot");
        }
        let covered = [&bytes[..8], &bytes[12..16], &bytes[16..]].concat();
        assert_eq!(header.number(head, "checksum"), u64::from(crc32c(0, &covered)));
        let epoch = self.store.word(region::head().start("snapshot epoch"));
        let epoch = if epoch == 0 { 0 } else { payload(epoch) };
        assert!(header.number(head, "flags") <= 1);
        assert!(header.number(head, "snapshot epoch") <= epoch, "no item is of a later epoch than the region");
        bytes[HEADER_BYTES + expiry_bytes as usize..].split_at(key as usize)
    }
}

#[test]
fn pages_reader_finds_every_item() {
    let store = Store::filled();
    let reader = Reader::new(&store);
    for i in 0..KEY_COUNT {
        assert_eq!(reader.get(&key(i)), Some(&value(i)[..]), "key {i}");
    }
    assert_eq!(reader.get(b"large"), Some(&[1; LARGE_VALUE_BYTES][..]));
    assert_eq!(reader.get(b"extent"), Some(&[3; EXTENT_VALUE_BYTES][..]));
    assert_eq!(reader.get(b"to be free"), None);
    assert_eq!(reader.get(b"never put"), None);
}

/// Each snapshot belongs to one epoch; later puts are stamped with the next one.
#[test]
fn items_are_stamped() {
    let store = Store::new(&PARAMETERS);
    for expected in 0..3 {
        store.put(b"key", b"value");
        let position = Reader::new(&store).find(b"key").expect("it was put");
        let at = segment::position().of_word(position, "offset");
        assert_eq!(header().number(store.bytes(at, HEADER_BYTES as u64), "snapshot epoch"), expected);
        let word = region::head().start("snapshot epoch");
        assert_eq!(store.word(word), if expected == 0 { 0 } else { seal(expected) });
        store.0.snapshots().expect("HiKV has them").take_snapshot().expect("no callback is running");
    }
}

#[test]
fn pages_reader_finds_expiring_items() {
    let store = Store::new(&PARAMETERS);
    store.0.put_until(b"key", b"value", Expiry::at_ms(u64::MAX - 1)).unwrap();
    let reader = Reader::new(&store);
    assert_eq!(reader.get(b"key"), Some(&b"value"[..]));
    let item = segment::position().of_word(reader.find(b"key").unwrap(), "offset");
    let moment = store.bytes(item + HEADER_BYTES as u64, EXPIRY_BYTES as u64);
    assert_eq!(expiry().number(moment, "moment"), u64::MAX - 1);
    for copy in SUPERBLOCK_COPIES {
        let features = superblock_fields().number(store.bytes(copy.0, 4096), "features");
        assert_eq!(features & u64::from(FEATURE_EXPIRY), u64::from(FEATURE_EXPIRY));
    }
}
