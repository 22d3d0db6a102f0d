//! Compares `docs/format/pmekv.md` with the engine, using a reader written only from the pages.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use engine::BatchOp;
use engine::prelude::*;
use engine_pmekv::{Options, Pmekv};
use heap::Parameters;
use heap::layout::ENGINE_AREA;
use index::Position;
use items::layout::{HEADER_BYTES, Header};
use pmem::{Bytes, LINE_BYTES, Offset, crc32c};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::format_docs::fields::Fields;
use crate::format_docs::pages::table;
use crate::format_docs::region::payload;

const PAGE: &str = "pmekv";
const UUID: [u8; 16] = [9; 16];
const LANE_COUNT: u64 = 2;
const ENTRY_COUNT: u64 = 1_022;

struct Reader(Sim);

/// Records by place and expected checksum, with the expected key if the node contains it.
type Records = BTreeMap<(u64, u64), Option<Vec<u8>>>;

/// A key length that marks a key that is not in the node.
const NOT_THERE: u64 = 255;

impl Reader {
    fn bytes(&self, at: u64, len_bytes: u64) -> &[u8] {
        // SAFETY: no thread stores to the region any more.
        unsafe { self.0.bytes(Offset(at).span(len_bytes)) }.expect("it is in the region")
    }

    /// Returns the start of the lines of this name.
    fn line(name: &str) -> u64 {
        let rows = table(PAGE, "Engine area");
        let row = rows.iter().find(|row| row.text("name") == name).expect("the page has a row for it");
        let first = row.text("line").split(' ').next().expect("the row names its lines");
        ENGINE_AREA.0 + first.parse::<u64>().expect("a number") * LINE_BYTES
    }

    fn sealed(&self, at: u64) -> u64 {
        payload(self.0.load(Offset(at), Ordering::Relaxed))
    }

    /// Returns the records of the nodes, and the lanes' cuts.
    fn checkpoint(&self) -> (Records, Vec<u64>) {
        let names = ["number", "last node", "nodes", "keys", "zero", "checksum", "cuts"];
        let fields = Fields::bytes(PAGE, "Checkpoint record", 576).named(&names);
        let number = self.sealed(Reader::line("root"));
        let record = self.bytes(Reader::line(if number.is_multiple_of(2) { "even record" } else { "odd record" }), 576);
        fields.assert_zeroes(record);
        assert_eq!(fields.number(record, "number"), number);
        let cuts = fields.slice(record, "cuts");
        assert_eq!(fields.number(record, "checksum"), u64::from(crc32c(crc32c(salt(), &record[..60]), cuts)));
        let cuts = cuts.chunks(8).map(|cut| u64::from_le_bytes(cut.try_into().unwrap())).collect();
        let (mut at, mut node_count, mut records) = (fields.number(record, "last node"), 0, Records::new());
        while at != 0 {
            at = self.node(number, at, &mut records);
            node_count += 1;
        }
        assert_eq!((node_count, records.len() as u64), (fields.number(record, "nodes"), fields.number(record, "keys")));
        (records, cuts)
    }

    fn node(&self, number: u64, at: u64, records: &mut Records) -> u64 {
        let head = Fields::bytes(PAGE, "Node", 16).named(&["previous", "count", "checksum"]);
        let key = Fields::bytes(PAGE, "Key", 30).named(&["record", "record checksum", "lane", "length", "key"]);
        let node = self.bytes(at, 4_096);
        let keys = &node[16..16 + 30 * head.number(node, "count") as usize];
        let checksum = crc32c(crc32c(crc32c(0, &number.to_le_bytes()), &node[..12]), keys);
        assert_eq!(head.number(node, "checksum"), u64::from(checksum));
        for bytes in keys.chunks(30) {
            let length = key.number(bytes, "length");
            let said = (length != NOT_THERE).then(|| key.slice(bytes, "key")[..length as usize].to_vec());
            records.insert((key.number(bytes, "record"), key.number(bytes, "record checksum")), said);
        }
        head.number(node, "previous")
    }

    /// Applies a lane's log to the records.
    fn replay(&self, lane: u64, cut: u64, records: &mut Records) {
        let names = ["lane", "opening", "first", "previous", "zero", "checksum"];
        let head = Fields::bytes(PAGE, "Segment", LINE_BYTES).named(&names);
        let (mut at, mut segments) = (self.sealed(Reader::line("lane words") + lane * LINE_BYTES), Vec::new());
        while at != 0 {
            let header = self.bytes(at, LINE_BYTES);
            head.assert_zeroes(header);
            assert_eq!(head.number(header, "checksum"), u64::from(crc32c(salt(), &header[..60])));
            assert_eq!((head.number(header, "lane"), head.number(header, "opening")), (lane, 1));
            segments.push((at, head.number(header, "first")));
            at = if head.number(header, "first") > cut + 1 { head.number(header, "previous") } else { 0 };
        }
        for (segment, first) in segments.into_iter().rev() {
            for sequence in first.max(cut + 1)..first + ENTRY_COUNT {
                if !self.apply(segment, first, sequence, records) {
                    break;
                }
            }
        }
    }

    /// Applies an entry; returns false if there is none of this sequence.
    fn apply(&self, segment: u64, first: u64, sequence: u64, records: &mut Records) -> bool {
        let names = [
            "begins",
            "ends",
            "sequence",
            "kind",
            "durable",
            "record checksum",
            "zero",
            "batch",
            "hash",
            "zero too",
            "checksum",
        ];
        let fields = Fields::bytes(PAGE, "Entry", LINE_BYTES).named(&names);
        let entry = self.bytes(segment + (1 + sequence - first) * LINE_BYTES, LINE_BYTES);
        if fields.number(entry, "sequence") != sequence {
            return false;
        }
        let salt = crc32c(salt(), self.bytes(segment, 60));
        assert_eq!(fields.number(entry, "checksum"), u64::from(crc32c(salt, &entry[..60])));
        let [begins, ends, kind] = ["begins", "ends", "kind"].map(|name| fields.number(entry, name));
        assert!(fields.number(entry, "durable") < sequence);
        assert_eq!((begins != 0, kind == 3), (kind == 1, kind == 3 && ends == 0 && begins == 0));
        records.retain(|(record, _), _| ends == 0 || *record != ends);
        if begins != 0 {
            records.insert((begins, fields.number(entry, "record checksum")), None);
        }
        true
    }

    fn item(&self, (word, checksum): (u64, u64)) -> (Vec<u8>, Vec<u8>) {
        let at = Position::from_word(word).offset().0;
        let header = Header::from_bytes(*self.bytes(at, HEADER_BYTES as u64).first_chunk().unwrap());
        assert_eq!(u64::from(header.checksum), checksum);
        let (key, value) = self.bytes(at, header.item_bytes())[HEADER_BYTES..].split_at(header.key_bytes.into());
        (key.to_vec(), value.to_vec())
    }
}

fn salt() -> u32 {
    crc32c(crc32c(0, b"pmekv"), &UUID)
}

/// Returns a store with a checkpoint of several nodes, followed by a log with updates, deletes and a batch.
fn filled() -> (Reader, BTreeMap<Vec<u8>, Vec<u8>>) {
    let sim = Sim::new(0, Model::Line);
    let parameters = Parameters { uuid: UUID, hash_seed: 9, partition_count: LANE_COUNT as u32, region_bytes: 1 << 20 };
    let store = Pmekv::format(sim.clone(), HostDram, &parameters, Options::default()).unwrap();
    let key = |i: u32| format!("key {i:04}").into_bytes();
    let mut contents: BTreeMap<Vec<u8>, Vec<u8>> = (0..700).map(|i| (key(i), vec![i as u8; i as usize % 90])).collect();
    contents.extend([16, 17, 300].map(|key_bytes| (vec![b'l'; key_bytes], b"of a long key".to_vec())));
    contents.iter().for_each(|(key, value)| store.put(key, value).unwrap());
    store.checkpoint().unwrap();
    for i in 0..40 {
        store.put(&key(i * 3), b"another").unwrap();
        contents.insert(key(i * 3), b"another".into());
        store.delete(&key(i * 5 + 1)).unwrap();
        contents.remove(&key(i * 5 + 1));
    }
    let keys: Vec<_> = (0..5).map(|i| vec![b'b', i]).collect();
    let ops: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: b"at once" }).collect();
    store.write_batch(&ops).unwrap();
    contents.extend(keys.into_iter().map(|key| (key, b"at once".to_vec())));
    (Reader(sim), contents)
}

#[test]
fn page_reader_finds_every_key() {
    let (reader, contents) = filled();
    assert_eq!(reader.sealed(Reader::line("opening")), 1);
    let (mut records, cuts) = reader.checkpoint();
    assert!(records.len() == 703 && cuts.len() == 64);
    assert_eq!(records.values().filter(|said| said.is_none()).count(), 2, "the long keys are not in the nodes");
    (0..LANE_COUNT).for_each(|lane| reader.replay(lane, cuts[lane as usize], &mut records));
    let found = records.into_iter().map(|(record, said)| {
        let (key, value) = reader.item(record);
        assert!(said.is_none_or(|said| said == key));
        (key, value)
    });
    let found: BTreeMap<_, _> = found.collect();
    assert_eq!(found, contents);
}
