//! Compares `docs/format/ink.md` with the engine, using a reader written only from the pages.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use engine::Expiry;
use engine::prelude::*;
use engine_ink::{Ink, Options};
use heap::layout::ENGINE_AREA;
use heap::{Class, Parameters};
use pmem::{Bytes, LINE_BYTES, Offset, crc32c};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::format_docs::fields::Fields;
use crate::format_docs::region::payload;

const PAGE: &str = "ink";
const ORDER: u64 = 7;
const LANE_COUNT: u64 = 2;

fn root_line() -> Fields {
    Fields::bytes(PAGE, "Root line", LINE_BYTES).named(&["root", "stamp blocks", "zero"])
}

fn lane_line() -> Fields {
    Fields::bytes(PAGE, "Lane line", LINE_BYTES).named(&["number", "log", "intent", "zero"])
}

fn pointer() -> Fields {
    Fields::bits(PAGE, "Pointer word").named(&["offset", "class", "check"])
}

/// A store, read only by the documented offsets and bits.
struct Reader(Sim);

impl Reader {
    fn bytes(&self, at: u64, len_bytes: u64) -> &[u8] {
        // SAFETY: no thread stores to the region any more.
        unsafe { self.0.bytes(Offset(at).span(len_bytes)) }.expect("it is in the region")
    }

    fn word(&self, at: u64) -> u64 {
        self.0.load(Offset(at), Ordering::Relaxed)
    }

    /// Checks a pointer word; returns the place it points to and the space there.
    fn follow(&self, word: u64) -> (u64, u64) {
        let bytes = word.to_le_bytes();
        assert_eq!(pointer().of_word(word, "check"), u64::from(crc32c(0x1A4, &bytes[..7]) as u8));
        self.place(word)
    }

    fn place(&self, word: u64) -> (u64, u64) {
        let class = Class::from_index(pointer().of_word(word, "class") as u8).expect("no extents in this store");
        (pointer().of_word(word, "offset"), class.bytes())
    }

    fn key(&self, word: u64) -> Vec<u8> {
        let header = Fields::bytes(PAGE, "Key chunk", 8).named(&["length", "zero", "checksum"]);
        let (at, capacity_bytes) = self.place(word);
        let head = self.bytes(at, 8);
        header.assert_zeroes(head);
        let key = self.bytes(at + 8, header.number(head, "length"));
        let checksum = crc32c(crc32c(0, &head[..4]), key);
        assert_eq!(header.number(head, "checksum"), u64::from(checksum));
        assert_eq!(pointer().of_word(word, "check"), u64::from(checksum as u8));
        assert!(8 + key.len() as u64 <= capacity_bytes);
        key.to_vec()
    }

    /// Returns a key's value, expiry time and stamp.
    fn value(&self, word: u64, key: &[u8]) -> (Vec<u8>, Option<u64>, u64) {
        let names = ["length", "flags", "checksum", "tag", "stamp"];
        let header = Fields::bytes(PAGE, "Value chunk", 24).named(&names);
        let (at, capacity_bytes) = self.follow(word);
        let head = self.bytes(at, 24);
        let [length, flags, checksum, tag, stamp] = names.map(|name| header.number(head, name));
        let of_key = crc32c(crc32c(0, &(key.len() as u32).to_le_bytes()), key);
        assert_eq!(tag, u64::from(of_key ^ (at / 16) as u32));
        let expiry_bytes = flags * 8;
        let rest = self.bytes(at + 24, expiry_bytes + length);
        let covered = [&head[..8], &head[12..], rest].concat();
        assert_eq!((checksum, flags <= 1), (u64::from(crc32c(0, &covered)), true));
        assert!(24 + rest.len() as u64 <= capacity_bytes);
        let (expiry, value) = rest.split_at(expiry_bytes as usize);
        (value.to_vec(), expiry.first_chunk().map(|&bytes| u64::from_le_bytes(bytes)), stamp)
    }

    /// Calls `each` with the pairs of every leaf, in order.
    fn walk(&self, pointer_word: u64, level: Option<u64>, each: &mut impl FnMut(u64, u64)) {
        let header = Fields::bytes(PAGE, "Node", 16).named(&["meta", "first child"]);
        let pair = Fields::bytes(PAGE, "Pair", 16).named(&["key", "value"]);
        let meta = Fields::bits(PAGE, "Meta word").named(&["level", "count", "zero", "check"]);
        let (at, capacity_bytes) = self.follow(pointer_word);
        assert_eq!(capacity_bytes, 16 * (ORDER + 1));
        let word = self.word(at + header.start("meta"));
        let sealed = payload(word);
        let [found, count] = ["level", "count"].map(|name| meta.of_word(word, name));
        assert_eq!((level.unwrap_or(found), sealed >> 24), (found, 0));
        if found > 0 {
            self.walk(self.word(at + header.start("first child")), Some(found - 1), each);
        }
        for i in 0..count {
            let [key, value] = ["key", "value"].map(|name| self.word(at + 16 + 16 * i + pair.start(name)));
            if found > 0 {
                self.key(key);
                self.walk(value, Some(found - 1), each);
            } else {
                each(key, value);
            }
        }
    }
}

fn filled() -> (Reader, BTreeMap<Vec<u8>, Vec<u8>>) {
    let sim = Sim::new(0, Model::Line);
    let parameters =
        Parameters { uuid: [9; 16], hash_seed: 9, partition_count: LANE_COUNT as u32, region_bytes: 1 << 20 };
    let options = Options { order: ORDER as usize, in_place: false };
    let store = Ink::format(sim.clone(), HostDram, &parameters, options).unwrap();
    let mut contents = BTreeMap::new();
    for i in 0..200u32 {
        let (key, value) = (format!("key {:03}", i * 37 % 200).into_bytes(), vec![i as u8; i as usize]);
        store.put(&key, &value).unwrap();
        contents.insert(key, value);
    }
    assert!(store.delete(b"key 100").unwrap());
    contents.remove(&b"key 100"[..]);
    store.put_until(b"key 101", b"for a time", Expiry::at_ms(u64::MAX - 1)).unwrap();
    contents.insert(b"key 101".into(), b"for a time".into());
    (Reader(sim), contents)
}

#[test]
fn page_reader_finds_keys_in_order() {
    let (reader, contents) = filled();
    let (mut found, mut dead, mut stamps) = (Vec::new(), 0, Vec::new());
    let root = reader.word(ENGINE_AREA.0 + root_line().start("root"));
    reader.walk(root, None, &mut |key, value| match value {
        0 => dead += 1,
        _ => {
            let key = reader.key(key);
            let (value, expiry, stamp) = reader.value(value, &key);
            assert_eq!(expiry, (key == b"key 101").then_some(u64::MAX - 1));
            found.push((key, value));
            stamps.push(stamp);
        }
    });
    assert!(found.into_iter().eq(contents) && dead == 1);
    stamps.sort_unstable();
    stamps.dedup();
    let blocks = payload(reader.word(ENGINE_AREA.0 + root_line().start("stamp blocks")));
    assert!(stamps.len() == 199 && stamps.iter().all(|stamp| (1..=blocks).contains(&(stamp / 65_536))));
}

/// Each lane's last run is the last change of several words; its number was raised.
#[test]
fn lanes_and_last_runs_match_documentation() {
    let (reader, _) = filled();
    let run = Fields::bytes(PAGE, "Run", 24).named(&["number", "length", "lane", "checksum", "zero"]);
    let range = Fields::bits(PAGE, "Range word").named(&["offset", "words"]);
    root_line().assert_zeroes(reader.bytes(ENGINE_AREA.0, LINE_BYTES));
    let line_of = |lane: u64| ENGINE_AREA.0 + (16 + lane) * LINE_BYTES;
    let is_used = |lane: &u64| payload(reader.word(line_of(*lane) + lane_line().start("number"))) > 0;
    let lane = (0..LANE_COUNT).find(is_used).expect("one lane was used");
    let line = line_of(lane);
    lane_line().assert_zeroes(reader.bytes(line, LINE_BYTES));
    let [number, log, intent] = ["number", "log", "intent"].map(|name| reader.word(line + lane_line().start(name)));
    let (number, log) = (payload(number), payload(log));
    let head = reader.bytes(log, 24);
    run.assert_zeroes(head);
    assert_eq!((run.number(head, "number") + 1, run.number(head, "lane")), (number, lane));
    let length = run.number(head, "length");
    let ranges = reader.bytes(log + 24, length);
    assert_eq!(run.number(head, "checksum"), u64::from(crc32c(crc32c(0, &head[..16]), ranges)));
    let mut at = 0;
    while at < length {
        let word = reader.word(log + 24 + at);
        assert!(
            range.of_word(word, "offset").is_multiple_of(8) && range.of_word(word, "offset") < reader.0.len_bytes()
        );
        at += 8 + range.of_word(word, "words") * 8;
    }
    assert_eq!(at, length);
    // The last change of a single word was the value of the expiring key.
    let intent = payload(intent);
    assert_eq!(reader.value(reader.word(intent), b"key 101").0, b"for a time");
}
