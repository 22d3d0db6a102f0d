//! Compares `docs/format/rewo-hash.md` with the engine, using a reader written only from the pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::prelude::*;
use engine::{BatchOp, Expiry, Hasher};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use heap::layout::{SEGMENT_BYTES, UNIT_BYTES, batch_word};
use parking_lot::Mutex;
use pmem::{Bytes, Offset, crc32c};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::format_docs::fields::Fields;
use crate::format_docs::region::payload;

const PAGE: &str = "rewo-hash";
const SEED: u64 = 11;
const PARAMETERS: Parameters = Parameters { uuid: [9; 16], hash_seed: SEED, partition_count: 1, region_bytes: 4 << 20 };

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

    /// Returns the live segments of the region's first chunk.
    fn segments(&self) -> Vec<u64> {
        let state = |at: &u64| self.word(*at) != 0 && payload(self.word(*at)) & 7 == 2;
        // The first chunk is one of segments: its header has a line, and its slots are at the end.
        let chunk = UNIT_BYTES..17 * UNIT_BYTES;
        let all = chunk.step_by(SEGMENT_BYTES as usize).skip(1);
        all.filter(|at| self.word(*at) >> 48 != 0).filter(state).collect()
    }

    fn item(&self, position: u64) -> (Vec<u8>, Vec<u8>) {
        let at = position & 0xFFFF_FFFF_FFFF;
        let head = self.bytes(at, 16);
        let number = |at: usize, len: usize| {
            head[at..at + len].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (value_bytes, key_bytes, start) = (number(0, 4), number(4, 2), 16 + 8 * number(6, 2));
        let rest = self.bytes(at + start, key_bytes + value_bytes);
        let (key, value) = rest.split_at(key_bytes as usize);
        (key.to_vec(), value.to_vec())
    }

    /// Calls `each` with the items of the bucket at `at`, whose number is `number`.
    fn bucket(&self, at: u64, number: u64, each: &mut impl FnMut(u64, Vec<u8>, Vec<u8>)) {
        let bucket = Fields::bytes(PAGE, "Bucket", 256).named(&["meta word", "slots"]);
        let meta = Fields::bits(PAGE, "Meta word").named(&["bitmap", "lock bits", "shapes"]);
        let slot = Fields::bytes(PAGE, "Slot", 31).named(&["body", "checksum"]);
        let word = self.word(at + bucket.start("meta word"));
        let bitmap = meta.of_word(word, "bitmap");
        assert!(bitmap.count_ones() < 8);
        for i in (0..8).filter(|i| bitmap >> i & 1 == 1) {
            let shape = meta.of_word(word, "shapes") >> (6 * i) & 0x3F;
            let record = self.bytes(at + bucket.start("slots") + 31 * i, 31);
            let body = slot.slice(record, "body");
            let covered = [&[shape as u8][..], body].concat();
            assert_eq!(slot.number(record, "checksum"), u64::from(crc32c(0, &covered)));
            let (kind, length) = (shape >> 4, (shape & 15) as usize);
            let (key, value) = match kind {
                0 => (body[..16].to_vec(), body[16..16 + length].to_vec()),
                1 => {
                    let (key, rest) = body[1..].split_at(usize::from(body[0]));
                    (key.to_vec(), rest[..length].to_vec())
                }
                2 => {
                    let item = Fields::bytes(PAGE, "Item slot", 27).named(&["signature", "position", "zero"]);
                    item.assert_zeroes(body);
                    let (key, value) = self.item(item.number(body, "position"));
                    assert_eq!(item.number(body, "signature"), Hasher::new(SEED).signature(&key));
                    (key, value)
                }
                _ => panic!("a slot of kind {kind}"),
            };
            assert!(choices(&key).contains(&number), "{key:?} is in bucket {number}");
            each(kind, key, value);
        }
    }
}

fn choices(key: &[u8]) -> [u64; 2] {
    let fields = Fields::bits(PAGE, "Signature").named(&["second part", "first part", "rest"]);
    let signature = Hasher::new(SEED).signature(key);
    let first = fields.of_word(signature, "first part") * 63 / 65_536;
    [first, (first + 1 + fields.of_word(signature, "second part") * 62 / 65_536) % 63]
}

fn filled() -> (Sim, BTreeMap<Vec<u8>, Vec<u8>>) {
    let sim = Sim::new(0, Model::Line);
    let store = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    let mut contents = BTreeMap::new();
    for i in 0..900u32 {
        let key = if i % 2 == 0 { format!("a key of {i:07}") } else { format!("key {i}") }.into_bytes();
        let value = vec![i as u8; (i % 23) as usize];
        store.put(&key, &value).unwrap();
        contents.insert(key, value);
    }
    assert!(store.delete(b"key 101").unwrap());
    contents.remove(&b"key 101"[..]);
    store.put_until(b"key 103", b"for a time", Expiry::at_ms(u64::MAX - 1)).unwrap();
    contents.insert(b"key 103".into(), b"for a time".into());
    (sim, contents)
}

#[test]
fn page_reader_finds_every_key() {
    let (sim, contents) = filled();
    let reader = Reader(sim);
    let segment = Fields::bytes(PAGE, "Segment", SEGMENT_BYTES).named(&["header", "zero", "buckets"]);
    let (mut found, mut kinds) = (BTreeMap::new(), [0; 3]);
    let segments = reader.segments();
    assert!(segments.len() >= 3, "{segments:?}");
    for at in segments {
        segment.assert_zeroes(reader.bytes(at, SEGMENT_BYTES));
        for number in 0..63 {
            reader.bucket(at + segment.start("buckets") + 256 * number, number, &mut |kind, key, value| {
                kinds[kind as usize] += 1;
                assert!(found.insert(key, value).is_none(), "a key occurs twice");
            });
        }
    }
    assert!(found == contents && kinds.iter().all(|count| *count > 0), "{kinds:?}");
}

/// The record exists from the store of the word that names it until the word is cleared.
#[test]
fn batchs_record_lies_as_documented() {
    let (sim, _) = filled();
    let store = RewoHash::open(sim.clone(), HostDram).unwrap();
    let records = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&records);
    sim.observe(Box::new(move |sim: &Sim, _| {
        let word = sim.load(batch_word(0), Ordering::Relaxed);
        if word != 0 {
            // SAFETY: the record does not change while the word names it.
            let record = unsafe { sim.bytes(Offset(payload(word) & !15).span(16 + 3 * 272)) };
            noted.lock().push(record.expect("it is in the region").to_vec());
        }
    }));
    let put = |key: &'static [u8]| BatchOp::Put { key, value: b"batched" };
    store.write_batch(&[put(b"key 1"), put(b"key 3"), put(b"new")]).unwrap();
    sim.unobserve();
    let records = records.lock();
    let record = records.first().expect("a word named it");
    let header = Fields::bytes(PAGE, "Batch record", 16).named(&["count", "checksum", "zero"]);
    let entry = Fields::bytes(PAGE, "Batch entry", 272).named(&["place", "zero", "bucket"]);
    header.assert_zeroes(&record[..16]);
    let count = header.number(record, "count") as usize;
    assert_eq!(count, 3);
    let checksum = crc32c(crc32c(0, &record[..4]), &record[16..16 + count * 272]);
    assert_eq!(header.number(record, "checksum"), u64::from(checksum));
    for bytes in record[16..].chunks_exact(272) {
        entry.assert_zeroes(bytes);
        let place = entry.number(bytes, "place");
        // SAFETY: no thread stores to the region any more.
        let now = unsafe { sim.bytes(Offset(place).span(256)) }.expect("it is in the region");
        assert_eq!(entry.slice(bytes, "bucket"), now, "it was carried out");
    }
}
