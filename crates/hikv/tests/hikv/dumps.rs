//! Dumps: written items are read back, and a changed or truncated dump is never accepted as complete.

use std::io::{BufWriter, Read};

use hikv::dump::layout::{PIECE_BYTES, WHOLE_VALUE_BYTES_MAX};
use hikv::dump::{DumpError, DumpReader, DumpValue, DumpWriter};

type Item = (Vec<u8>, Vec<u8>, Option<u64>);

const UUID: [u8; 16] = *b"identity of some";

fn written(items: &[Item]) -> Vec<u8> {
    let mut writer = DumpWriter::new(Vec::new(), UUID).unwrap();
    for (key, value, expires_at_ms) in items {
        writer.put(key, value, *expires_at_ms).unwrap();
    }
    assert_eq!(writer.item_count(), items.len() as u64);
    writer.finish().unwrap()
}

/// Returns all items of a dump, or the items before an error and the error.
fn read(mut bytes: impl Read) -> (Vec<Item>, Result<(), String>) {
    let mut items = Vec::new();
    let outcome = read_into(&mut items, &mut bytes);
    (items, outcome)
}

fn read_into(items: &mut Vec<Item>, bytes: &mut dyn Read) -> Result<(), String> {
    let mut reader = DumpReader::new(bytes).map_err(|error| error.to_string())?;
    assert_eq!(reader.uuid(), UUID);
    while let Some(item) = reader.next_item().map_err(|error| error.to_string())? {
        let key = item.key.to_vec();
        let value = match item.value {
            DumpValue::Whole(value) => value.to_vec(),
            DumpValue::Pieces(mut pieces) => {
                let mut value = Vec::new();
                let announced = pieces.left_bytes();
                pieces.read_to_end(&mut value).map_err(|error| error.to_string())?;
                assert_eq!(value.len() as u64, announced);
                value
            }
        };
        items.push((key, value, item.expires_at_ms));
    }
    Ok(())
}

fn items() -> Vec<Item> {
    let long = |len: usize| (0..len).map(|i| (i % 251) as u8).collect::<Vec<_>>();
    vec![
        (b"".to_vec(), b"".to_vec(), None),
        (b"key".to_vec(), b"value".to_vec(), Some(u64::MAX)),
        (long(65_535), long(WHOLE_VALUE_BYTES_MAX), Some(0)),
        (b"long".to_vec(), long(WHOLE_VALUE_BYTES_MAX + 1), None),
        (b"longer".to_vec(), long(3 * PIECE_BYTES + 7), Some(1_700_000_000_000)),
        (b"last".to_vec(), b"\0\xFF".to_vec(), None),
    ]
}

/// Returns a dump small enough to be damaged at every byte.
fn small() -> Vec<u8> {
    let items = [(&b"a"[..], &b"1"[..]), (b"b", &[7; WHOLE_VALUE_BYTES_MAX + 1]), (b"c", b"")];
    written(&items.map(|(key, value)| (key.to_vec(), value.to_vec(), None)))
}

#[test]
fn dumps_keep_order_and_expiry() {
    for items in [vec![], items()] {
        assert_eq!(read(&written(&items)[..]), (items, Ok(())));
    }
    let many: Vec<Item> =
        (0..20_000u32).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; i as usize % 90], None)).collect();
    assert_eq!(read(&written(&many)[..]), (many, Ok(())));
}

#[test]
fn bytewise_input_loads_the_same() {
    struct Drops<'a>(&'a [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = into.len().min(1);
            self.0.read(&mut into[..count])
        }
    }
    assert_eq!(read(Drops(&written(&items()))), (items(), Ok(())));
}

#[test]
fn unread_values_are_skipped() {
    let bytes = written(&items());
    let mut reader = DumpReader::new(&bytes[..]).unwrap();
    let mut keys = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        keys.push(item.key.to_vec());
    }
    assert!(keys.into_iter().eq(items().into_iter().map(|item| item.0)));
    assert_eq!((reader.done_bytes(), reader.item_count()), (bytes.len() as u64, items().len() as u64));
}

#[test]
fn dump_that_is_cut_anywhere_is_refused() {
    let (bytes, whole) = (small(), read(&small()[..]).0);
    for len in (0..bytes.len()).filter(|len| len % 101 == 0 || *len < 300 || bytes.len() - len < 300) {
        let (items, outcome) = read(&bytes[..len]);
        let error = outcome.expect_err("a part is no dump");
        assert!(whole.starts_with(&items), "cut at {len}");
        assert!(len < 8 || error.contains(&format!("offset {len}")), "cut at {len}: {error}");
    }
}

#[test]
fn bit_flip_is_found_after_intact_items() {
    let (bytes, whole) = (small(), read(&small()[..]).0);
    for at in (0..bytes.len()).filter(|at| at % 53 == 0 || *at < 200 || bytes.len() - at < 200) {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let (items, outcome) = read(&flipped[..]);
            assert!(outcome.is_err(), "bit {bit} of byte {at}");
            assert!(whole.starts_with(&items), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn missing_doubled_or_swapped_blocks_are_found() {
    let many: Vec<Item> = (0..9_000u32).map(|i| (i.to_be_bytes().to_vec(), vec![1; 20], None)).collect();
    let bytes = written(&many);
    let mut blocks = vec![];
    let mut at = 64;
    while at < bytes.len() {
        let len = 16 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        blocks.push(&bytes[at..at + len]);
        at += len;
    }
    assert!(blocks.len() > 4);
    let joined = |blocks: &[&[u8]]| [&[&bytes[..64]], blocks].concat().concat();
    assert!(read(&joined(&blocks)[..]).1.is_ok());
    let (mut missing, mut doubled, mut swapped) = (blocks.clone(), blocks.clone(), blocks.clone());
    missing.remove(1);
    doubled.insert(1, blocks[1]);
    swapped.swap(0, 1);
    for wrong in [missing, doubled, swapped] {
        assert!(read(&joined(&wrong)[..]).1.unwrap_err().contains("not in its place"));
    }
    let followed = [&bytes[..], b"x"].concat();
    assert!(read(&followed[..]).1.unwrap_err().contains("bytes follow the end"));
}

#[test]
fn random_dumps_are_refused_without_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    let whole = written(&items());
    let expected = items();
    for _ in 0..3_000 {
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..5) {
            let (at, len) = (random.usize(..bytes.len()), random.usize(1..40));
            let end = bytes.len().min(at + len);
            random.fill(&mut bytes[at..end]);
        }
        if bytes == whole {
            continue;
        }
        let (items, outcome) = read(&bytes[..]);
        assert!(outcome.is_err() && expected.starts_with(&items));
    }
    for len in 0..2_000 {
        let mut bytes = vec![0; len];
        random.fill(&mut bytes);
        let with_header = [&whole[..64], &bytes].concat();
        assert!(read(&bytes[..]).1.is_err() && read(&with_header[..]).1.is_err());
    }
}

/// Returns a header with another field and a matching checksum.
fn forged(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = small();
    bytes[at..at + field.len()].copy_from_slice(field);
    let checksum = pmem::crc32c(0, &bytes[..60]);
    bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn newer_dump_is_refused_and_named() {
    let newer = DumpReader::new(&forged(8, &[9, 0])[..]).err().unwrap();
    assert!(matches!(newer, DumpError::Newer { found: 9, supported: 1 }));
    assert_eq!(newer.to_string(), "the dump has version 9; this program reads versions up to 1");
    let flags = DumpReader::new(&forged(12, &[4, 0])[..]).err().unwrap();
    assert!(matches!(flags, DumpError::UnknownFlags { flags: 4 }));
}

#[test]
fn foreign_file_is_no_dump() {
    for bytes in [&b""[..], b"key\tvalue\n", b"\x89PNG\r\n\x1a\n and so on"] {
        assert!(matches!(DumpReader::new(bytes), Err(DumpError::NotADump)));
    }
}

#[test]
fn end_of_dump_flushes_the_output() {
    let mut writer = DumpWriter::new(BufWriter::new(Vec::new()), UUID).unwrap();
    writer.put(b"key", b"value", None).unwrap();
    let out = writer.finish().unwrap();
    assert!(out.buffer().is_empty());
    assert!(read(&out.get_ref()[..]).1.is_ok());
}

#[test]
fn oversized_item_is_refused_dump_stays_intact() {
    let mut writer = DumpWriter::new(Vec::new(), UUID).unwrap();
    writer.put(b"a", b"1", None).unwrap();
    let error = writer.put(&[0; 65_536], b"", None).unwrap_err();
    assert_eq!(error.to_string(), "the key has 65536 bytes; the limit is 65535");
    let (items, outcome) = read(&writer.finish().unwrap()[..]);
    assert_eq!((items.len(), outcome), (1, Ok(())));
}
