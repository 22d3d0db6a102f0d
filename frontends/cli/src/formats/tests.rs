//! Every format preserves any bytes; errors for malformed items give the line number.

use std::io::{BufReader, ErrorKind, Read};
use std::iter;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const FORMATS: [Format; 3] = [Format::Tsv, Format::Csv, Format::Jsonl];

fn write(format: Format, items: &[Item]) -> Vec<u8> {
    let mut text = Vec::new();
    items.iter().for_each(|item| format.write(&item.key, &item.value, &mut text).unwrap());
    text
}

/// Returns the items in `text`, and the malformed lines.
fn read(format: Format, text: impl BufRead) -> (Vec<Item>, Vec<(u64, String)>) {
    let mut reader = Reader::new(text, format);
    let (mut items, mut bad, mut item) = (Vec::new(), Vec::new(), Item::default());
    loop {
        match reader.read(&mut item) {
            Ok(true) => items.push(item.clone()),
            Ok(false) => return (items, bad),
            Err(ReadError::Malformed { line, what }) => bad.push((line, what)),
            Err(ReadError::Input(error)) => panic!("{error}"),
            Err(ReadError::CutOff { what, .. }) => panic!("{what}"),
        }
    }
}

/// An input in pieces of these lengths, repeated; length 0 means that a signal interrupts the read.
struct Pieces<'a, L> {
    text: &'a [u8],
    lens_bytes: L,
}

impl<L: Iterator<Item = usize>> Read for Pieces<'_, L> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.lens_bytes.next() {
            Some(len_bytes) if len_bytes > 0 => self
                .text
                .take(len_bytes as u64)
                .read(buffer)
                .inspect(|read_bytes| self.text = &self.text[*read_bytes..]),
            _ => Err(ErrorKind::Interrupted.into()),
        }
    }
}

fn item(key: &[u8], value: &[u8]) -> Item {
    Item { key: key.to_vec(), value: value.to_vec(), tree: None }
}

/// Generates bytes; those with a meaning in a format are more frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special = proptest::sample::select(b"\t\n\r\\\0\",x0{}:\x7f\xc3\xa9\xff".to_vec());
    vec(prop_oneof![special, any::<u8>()], 0..24)
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    vec((bytes(), bytes()).prop_map(|(key, value)| Item { key, value, tree: None }), 0..8)
}

proptest! {
    #[test]
    fn any_bytes_come_back(items in items()) {
        for format in FORMATS {
            prop_assert_eq!(read(format, write(format, &items).as_slice()), (items.clone(), vec![]));
        }
    }

    #[test]
    fn pieces_make_the_same_lines(items in items(), mut lens_bytes in vec(0..9_usize, 0..12), buffer_bytes in 1..40_usize) {
        lens_bytes.push(1);
        for format in FORMATS {
            let text = write(format, &items);
            let pieces = Pieces { text: &text, lens_bytes: iter::repeat(&lens_bytes).flatten().copied() };
            let source = BufReader::with_capacity(buffer_bytes, pieces);
            prop_assert_eq!(read(format, source), (items.clone(), vec![]));
        }
    }

    #[test]
    fn any_input_is_read_to_its_end(text in vec(any::<u8>(), 0..200)) {
        for format in FORMATS {
            let (items, bad) = read(format, text.as_slice());
            let line_count = text.split_inclusive(|&byte| byte == b'\n').count();
            prop_assert!(items.len() + bad.len() <= line_count);
        }
    }

    #[test]
    fn tsv_and_jsonl_are_text(items in items()) {
        prop_assert!(String::from_utf8(write(Format::Tsv, &items)).is_ok());
        prop_assert!(String::from_utf8(write(Format::Jsonl, &items)).is_ok());
    }

    #[test]
    fn the_csv_crate_reads_what_we_write(items in items()) {
        let text = write(Format::Csv, &items);
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_slice());
        let read: Vec<Item> = reader.byte_records().map(|record| {
            let record = record.unwrap();
            item(&record[0], &record[1])
        }).collect();
        prop_assert_eq!(read, items);
    }

    #[test]
    fn we_read_what_the_csv_crate_writes(items in items(), crlf: bool) {
        let terminator = if crlf { ::csv::Terminator::CRLF } else { ::csv::Terminator::Any(b'\n') };
        let mut writer = ::csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
        items.iter().for_each(|item| writer.write_record([&item.key, &item.value]).unwrap());
        prop_assert_eq!(read(Format::Csv, writer.into_inner().unwrap().as_slice()), (items, vec![]));
    }

    #[test]
    fn bad_item_is_named_by_first_line(before in items(), after in items()) {
        for (format, bad) in [(Format::Tsv, "no tab\n"), (Format::Csv, "no comma\n"), (Format::Jsonl, "{}\n")] {
            let mut text = write(format, &before);
            let line = 1 + text.iter().filter(|&&byte| byte == b'\n').count() as u64;
            text.extend_from_slice(bad.as_bytes());
            text.extend(write(format, &after));
            let (items, malformed) = read(format, text.as_slice());
            prop_assert_eq!(items, [before.clone(), after.clone()].concat());
            prop_assert_eq!(malformed.iter().map(|(line, _)| *line).collect::<Vec<_>>(), vec![line]);
        }
    }
}

#[test]
fn golden_lines() {
    let items = [item(b"k", b"v"), item(b"", b""), item(b"a\tb\0\x1b", "\u{e9}\n\"\\,".as_bytes()), item(b"\xff", b"")];
    let golden = [
        (Format::Tsv, "k\tv\n\t\na\\tb\\0\\x1b\t\u{e9}\\n\"\\\\,\n\\xff\t\n".as_bytes().to_vec()),
        (Format::Csv, [b"k,v\n,\na\tb\0\x1b,\"", "\u{e9}\n\"\"\\,\"\n".as_bytes(), b"\xff,\n"].concat()),
        (
            Format::Jsonl,
            "{\"key\":\"k\",\"value\":\"v\"}\n{\"key\":\"\",\"value\":\"\"}\n\
             {\"key\":\"a\\tb\\u0000\\u001b\",\"value\":\"\u{e9}\\n\\\"\\\\,\"}\n\
             {\"key_base64\":\"/w==\",\"value\":\"\"}\n"
                .as_bytes()
                .to_vec(),
        ),
    ];
    for (format, text) in golden {
        assert_eq!(write(format, &items), text, "{format:?}");
        assert_eq!(read(format, text.as_slice()), (items.to_vec(), vec![]), "{format:?}");
    }
}

#[test]
fn marks_of_editors_do_not_matter() {
    for (format, text) in
        [(Format::Tsv, "a\tb\n"), (Format::Csv, "a,b\n"), (Format::Jsonl, "{\"key\":\"a\",\"value\":\"b\"}\n")]
    {
        let marked = ["\u{feff}", text].concat();
        assert_eq!(read(format, marked.as_bytes()), (vec![item(b"a", b"b")], vec![]), "{format:?}");
        for key in ["\u{feff}a".as_bytes(), b"\xff\xfe", b"\xfe\xff"] {
            let items = [item(key, b"\xff\xfe")];
            assert_eq!(read(format, write(format, &items).as_slice()), (items.to_vec(), vec![]), "{format:?}");
        }
    }
}

/// The line at which a dump is cut off may look like an item with a shorter value.
#[test]
fn cut_dumps_have_no_other_items() {
    let items = [item(b"one", b"1, 22 and \"333\""), item(b"two", b"4444\n\xff5555\r\n"), item(b"", b"")];
    for format in FORMATS {
        let (mut text, mut begin) = (Vec::new(), Vec::new());
        format.begin(&mut begin).unwrap();
        text.extend([begin.clone(), write(format, &items)].concat());
        format.end(items.len() as u64, &mut text).unwrap();
        for len in begin.len()..text.len() - 1 {
            let mut reader = Reader::new(&text[..len], format);
            let (mut found, mut count) = (Item::default(), 0);
            let cut = loop {
                match reader.read(&mut found) {
                    Ok(true) => assert_eq!(found, items[count], "{format:?}, cut at {len}"),
                    Err(ReadError::Malformed { .. }) => continue,
                    end => break end,
                }
                count += 1;
            };
            assert!(matches!(cut, Err(ReadError::CutOff { .. })), "{format:?}, cut at {len}: {cut:?}");
        }
        assert_eq!(read(format, &text[..text.len() - 1]).0, items, "the end of the last line says nothing");
        let marked = [b"\xef\xbb\xbf", &text[..]].concat().repeat(2);
        assert_eq!(read(format, &marked[..]).0, [&items[..], &items].concat(), "two dumps that an editor saved");
    }
}

#[test]
fn line_ends_and_blanks_are_ignored() {
    for (format, text) in [
        (Format::Tsv, "\n\r\na\tb\r\n\nc\td"),
        (Format::Csv, "\n\r\na,b\r\n\nc,d"),
        (Format::Jsonl, "\n\r\n{\"key\":\"a\",\"value\":\"b\"}\r\n\n{\"value\":\"d\",\"key\":\"c\"}"),
    ] {
        assert_eq!(read(format, text.as_bytes()), (vec![item(b"a", b"b"), item(b"c", b"d")], vec![]), "{format:?}");
    }
}

#[test]
fn malformed_input_is_reported() {
    for (format, text, line, what) in [
        (Format::Tsv, "a\tb\n\nc\n", 3, "found 0 tabs"),
        (Format::Tsv, "a\tb\tc\n", 1, "found 2 tabs in 'a\\tb\\tc'"),
        (Format::Tsv, "a\\q\tb\n", 1, "\\q is not an escape"),
        (Format::Tsv, "a\tb\\x4\n", 1, "two hex digits"),
        (Format::Tsv, "a\tb\\xg4\n", 1, "\\xg4 is not an escape"),
        (Format::Tsv, "a\tb\\\n", 1, "a backslash ends the column"),
        (Format::Csv, "\"a\n\nb\",c\n\nd\n", 5, "found one"),
        (Format::Csv, "a,b,c\n", 1, "found more"),
        (Format::Csv, "a,\"b\"c\n", 1, "between a closing quote"),
        (Format::Csv, "a,b\"c\n", 1, "a quote inside a field"),
        (Format::Csv, "a,b\nc,\"d\ne\n", 2, "never closed"),
        (Format::Jsonl, "{\"key\":\"a\"\n", 1, "column 10"),
        (Format::Jsonl, "{\"key\":\"a\"}\n", 1, "neither value nor value_base64"),
        (Format::Jsonl, "{\"key\":\"a\",\"key_base64\":\"\",\"value\":\"\"}\n", 1, "both key and key_base64"),
        (Format::Jsonl, "{\"key\":\"a\",\"value\":\"\",\"ttl\":1}\n", 1, "unknown field `ttl`"),
        (Format::Jsonl, "{\"key\":\"a\",\"value_base64\":\"=\"}\n", 1, "value_base64 is not base64"),
        (Format::Jsonl, "{\"key\":1,\"value\":\"\"}\n", 1, "invalid type"),
    ] {
        let (_, malformed) = read(format, text.as_bytes());
        let [(found_line, found)] = &malformed[..] else { panic!("{text:?}: {malformed:?}") };
        assert_eq!(*found_line, line, "{text:?}: {found}");
        assert!(found.contains(what), "{text:?}: {found}");
    }
}

#[test]
fn the_extension_names_the_format() {
    for (file, format) in [
        ("a.tsv", FileFormat::Text(Format::Tsv)),
        ("b.CSV", FileFormat::Text(Format::Csv)),
        ("c.ndjson", FileFormat::Text(Format::Jsonl)),
        ("d.hikv", FileFormat::Hikv),
    ] {
        assert_eq!(FileFormat::of_file(Path::new(file)), Some(format));
    }
    assert_eq!(FileFormat::of_file(Path::new("tsv")), None);
    assert_eq!(FileFormat::of_file(Path::new("a.txt")), None);
}
