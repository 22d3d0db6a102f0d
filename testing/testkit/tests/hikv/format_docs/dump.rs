//! Compares `docs/format/dump.md` with the library, and reads dumps with a reader written only from the page.

use hikv::dump::DumpWriter;
use hikv::dump::layout::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockKind, END_BYTES, FLAG_EXPIRY, FLAG_PIECES, HEADER_BYTES, MAGIC,
    RECORD_HEADER_BYTES, VERSION, WHOLE_VALUE_BYTES_MAX,
};
use pmem::crc32c;

use crate::format_docs::fields::Fields;
use crate::format_docs::pages::{assert_names, table};

const PAGE: &str = "dump";
const UUID: [u8; 16] = *b"identity of some";

type Item = (Vec<u8>, Vec<u8>, Option<u64>);

fn items() -> Vec<Item> {
    let small = (0..3_000u32).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; i as usize % 100], None));
    let others = [
        (b"expires".to_vec(), b"soon".to_vec(), Some(1_700_000_000_123)),
        (b"large".to_vec(), (0..200_000u32).map(|i| i as u8).collect(), Some(7)),
        (vec![], vec![], None),
    ];
    small.chain(others).collect()
}

fn written() -> Vec<u8> {
    let mut writer = DumpWriter::new(Vec::new(), UUID).unwrap();
    for (key, value, expiry) in items() {
        writer.put(&key, &value, expiry).unwrap();
    }
    writer.finish().unwrap()
}

fn record() -> Fields {
    let names = ["kind", "flags", "key length", "value length"];
    Fields::bytes(PAGE, "Record", RECORD_HEADER_BYTES as u64).named(&names)
}

fn block() -> Fields {
    let names = ["length", "kind", "zero", "number", "checksum"];
    Fields::bytes(PAGE, "Block header", BLOCK_HEADER_BYTES as u64).named(&names)
}

/// Returns the value in a table's row of this name.
fn value(heading: &str, name: &str) -> u64 {
    let rows = table(PAGE, heading);
    rows.iter().find(|row| row.text("name") == name).unwrap_or_else(|| panic!("no '{name}'")).number("value")
}

#[test]
fn sizes_kinds_and_flags() {
    let rows = table(PAGE, "Sizes");
    assert_names(&rows, &["version", "block bytes at most", "whole value bytes at most"]);
    let sizes = [u64::from(VERSION), BLOCK_BYTES_MAX as u64, WHOLE_VALUE_BYTES_MAX as u64];
    assert!(rows.iter().map(|row| row.number("value")).eq(sizes));
    let kinds = [("records", BlockKind::Records), ("piece", BlockKind::Piece), ("end", BlockKind::End)];
    assert_names(&table(PAGE, "Block kinds"), &kinds.map(|(name, _)| name));
    assert!(kinds.iter().all(|&(name, kind)| value("Block kinds", name) == kind as u64));
    assert_names(&table(PAGE, "Record flags"), &["expiry", "pieces"]);
    let flags = ["expiry", "pieces"].map(|name| value("Record flags", name));
    assert_eq!(flags, [FLAG_EXPIRY, FLAG_PIECES].map(u64::from));
}

#[test]
fn the_header() {
    let names = ["magic", "version", "zero", "flags", "uuid", "zero", "checksum"];
    let (fields, bytes) = (Fields::bytes(PAGE, "Header", HEADER_BYTES as u64).named(&names), written());
    let header = &bytes[..HEADER_BYTES];
    assert_eq!((fields.slice(header, "magic"), fields.slice(header, "uuid")), (&MAGIC[..], &UUID[..]));
    let magic = MAGIC.map(|byte| format!("{byte:02x}")).join(" ");
    assert!(table(PAGE, "Header")[0].text("meaning").contains(&magic));
    let numbers = ["version", "flags", "checksum"].map(|name| fields.number(header, name));
    let checksum = crc32c(0, &header[..fields.start("checksum") as usize]);
    assert_eq!(numbers, [VERSION.into(), 0, checksum.into()]);
    fields.assert_zeroes(header);
}

/// Reads a complete dump by the documented offsets.
fn read(bytes: &[u8]) -> Vec<Item> {
    let (block, mut at, mut number, mut items) = (block(), HEADER_BYTES, 0, Vec::<Item>::new());
    loop {
        let header = &bytes[at..at + BLOCK_HEADER_BYTES];
        let contents = &bytes[at + BLOCK_HEADER_BYTES..][..block.number(header, "length") as usize];
        let checksum = crc32c(crc32c(0, &header[..block.start("checksum") as usize]), contents);
        assert_eq!(block.number(header, "checksum"), u64::from(checksum));
        assert_eq!(block.number(header, "number"), number);
        block.assert_zeroes(header);
        let kind = block.number(header, "kind");
        if kind == value("Block kinds", "end") {
            let end = Fields::bytes(PAGE, "End", END_BYTES as u64).named(&["items", "bytes", "checksum", "zero"]);
            let acknowledged = ["items", "bytes", "checksum"].map(|name| end.number(contents, name));
            assert_eq!(acknowledged, [items.len() as u64, at as u64, crc32c(0, &bytes[..at]).into()]);
            end.assert_zeroes(contents);
            assert_eq!(at + BLOCK_HEADER_BYTES + END_BYTES, bytes.len());
            return items;
        }
        if kind == value("Block kinds", "piece") {
            items.last_mut().expect("a piece belongs to a record").1.extend_from_slice(contents);
        } else {
            assert_eq!(kind, value("Block kinds", "records"));
            read_records(contents, &mut items);
        }
        at += BLOCK_HEADER_BYTES + contents.len();
        number += 1;
    }
}

fn read_records(mut records: &[u8], items: &mut Vec<Item>) {
    let fields = record();
    while !records.is_empty() {
        let mut take = |len: u64| records.split_off(..len as usize).expect("the record ends in its block");
        let head = take(RECORD_HEADER_BYTES as u64);
        let number = |name| fields.number(head, name);
        assert_eq!(number("kind"), 1);
        let has = |name| number("flags") & value("Record flags", name) != 0;
        let expiry = has("expiry").then(|| u64::from_le_bytes(take(8).try_into().unwrap()));
        let key = take(number("key length")).to_vec();
        let value = if has("pieces") { vec![] } else { take(number("value length")).to_vec() };
        items.push((key, value, expiry));
    }
}

#[test]
fn page_reader_finds_every_item() {
    assert_eq!(read(&written()), items());
}
