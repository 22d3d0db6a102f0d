//! Tests `load` and `dump` of Redis' dumps.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;

use rdb::{FileReader, FileWriter, Kind, Part, put_length, put_score, put_string};

use crate::support::{Place, hikv};

/// More than are written in one batch.
const LARGE_COUNT: u64 = 20_000;
/// In the year 2100.
const LATER_MS: u64 = 4_102_444_800_000;

/// Keys with their databases, expiries and values.
type Contents = BTreeMap<(u64, Vec<u8>), (Option<u64>, Content)>;

#[derive(PartialEq, Debug)]
enum Content {
    Ordered(Vec<Vec<u8>>),
    Unordered(BTreeSet<(Vec<u8>, Vec<u8>)>),
}

/// A key of a dump: database, key, type, expiry, parts.
type Entry<'a> = (u64, &'a str, Kind, Option<u64>, Vec<Part>);

fn write(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut writer = FileWriter::new(Vec::new(), &[("redis-ver", "7.0.15")]).unwrap();
    for (db, key, kind, expires_at_ms, parts) in entries {
        writer.begin(*db, key.as_bytes(), *kind, *expires_at_ms).unwrap();
        let mut value = Vec::new();
        if *kind != Kind::String {
            put_length(&mut value, parts.len() as u64);
        }
        for part in parts {
            match part {
                Part::String(string) | Part::Element(string) | Part::Member(string) => put_string(&mut value, string),
                Part::Field(field, of_field) => {
                    put_string(&mut value, field);
                    put_string(&mut value, of_field);
                }
                Part::Scored(member, score) => {
                    put_string(&mut value, member);
                    put_score(&mut value, *score);
                }
            }
        }
        writer.write(&value).unwrap();
    }
    writer.finish().unwrap()
}

fn read(dump: &[u8]) -> Contents {
    let (mut reader, mut contents) = (FileReader::new(dump, 1 << 30).unwrap(), Contents::new());
    while let Some(entry) = reader.next_entry().unwrap() {
        let (mut ordered, mut unordered) = (Vec::new(), BTreeSet::new());
        let count = reader.value(&entry, |part| {
            match part {
                Part::String(string) | Part::Element(string) => ordered.push(string),
                Part::Member(member) => _ = unordered.insert((member, Vec::new())),
                Part::Field(field, value) => _ = unordered.insert((field, value)),
                Part::Scored(member, score) => _ = unordered.insert((member, score.to_le_bytes().to_vec())),
            }
            Ok::<(), rdb::Error>(())
        });
        assert_eq!(count.unwrap(), (ordered.len() + unordered.len()) as u64, "an element is there twice");
        let is_ordered = matches!(entry.kind(), Some(Kind::String | Kind::List));
        let content = if is_ordered { Content::Ordered(ordered) } else { Content::Unordered(unordered) };
        let before = contents.insert((entry.db, entry.key), (entry.expires_at_ms, content));
        assert_eq!(before, None, "a key is there twice");
    }
    contents
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn example() -> Vec<u8> {
    let numbered =
        |prefix: &str| (0..LARGE_COUNT).map(|number| bytes(&format!("{prefix}{number}"))).collect::<Vec<_>>();
    let fields = numbered("f").into_iter().zip(numbered("v")).map(|(field, value)| Part::Field(field, value));
    let scored = numbered("m").into_iter().enumerate().map(|(at, member)| Part::Scored(member, at as f64 / 7.0));
    write(&[
        (0, "string", Kind::String, None, vec![Part::String(vec![0, 255, 10])]),
        (0, "expiring", Kind::String, Some(LATER_MS), vec![Part::String(bytes("x"))]),
        (0, "long gone", Kind::String, Some(1), vec![Part::String(bytes("x"))]),
        (0, "\u{ff}", Kind::String, None, vec![Part::String(Vec::new())]),
        (0, "list", Kind::List, None, ["a", "b", "", "a"].map(|text| Part::Element(bytes(text))).to_vec()),
        (0, "large list", Kind::List, None, numbered("e").into_iter().map(Part::Element).collect()),
        (0, "large hash", Kind::Hash, Some(LATER_MS), fields.collect()),
        (0, "large sorted set", Kind::SortedSet, None, scored.collect()),
        (3, "string", Kind::String, None, vec![Part::String(bytes("of database 3"))]),
        (3, "set", Kind::Set, Some(LATER_MS + 7), ["a", "", "b"].map(|text| Part::Member(bytes(text))).to_vec()),
        (3, "large set", Kind::Set, None, numbered("m").into_iter().map(Part::Member).collect()),
        (15, "empty", Kind::Hash, None, Vec::new()),
        (15, "hash", Kind::Hash, None, vec![Part::Field(bytes("f"), bytes("v"))]),
        (15, "sorted set", Kind::SortedSet, None, vec![Part::Scored(bytes("m"), f64::NEG_INFINITY)]),
    ])
}

/// The keys of the example that are loaded.
fn wanted() -> Contents {
    let mut wanted = read(&example());
    wanted.retain(|(_, key), _| key != b"long gone" && key != b"empty");
    wanted
}

#[test]
fn redis_dump_round_trips() {
    let (place, again) = (Place::in_memory(), Place::in_memory());
    let file = place.write("dump.rdb", example());
    let ended = place.run("load", &[&file]);
    let messages = ended.messages();
    ended.succeeded();
    for said in ["loaded 12 items", "left out 1 key that had expired", "left out 1 collection without elements"] {
        assert!(messages.contains(said), "'{said}' is missing: {messages}");
    }
    let dumped = place.file("out.rdb");
    place.run("dump", &[&dumped]).succeeded();
    assert!(read(&std::fs::read(&dumped).unwrap()) == wanted(), "the keys differ");
    // The same again, from standard input and without a name.
    again.run_with_input("load", &["-"], &std::fs::read(&dumped).unwrap()).succeeded();
    assert!(read(&again.run("dump", &["--format", "rdb"]).succeeded()) == wanted(), "the keys differ");
    // Loading again replaces all keys.
    place.run("load", &[&file]).succeeded();
    assert!(read(&place.run("dump", &["--format", "rdb"]).succeeded()) == wanted(), "the keys differ");
    place.run("check", &["--deep"]).succeeded();
}

#[test]
fn bad_dumps_are_refused_with_offset() {
    let small = write(&[
        (0, "a", Kind::String, None, vec![Part::String(bytes("1"))]),
        (0, "l", Kind::List, None, vec![Part::Element(bytes("x"))]),
    ]);
    let place = Place::in_memory();
    for end in 9..small.len() {
        place.write("dump.rdb", &small[..end]);
        place.run("load", &[place.file("dump.rdb")]).failed(2, &["dump.rdb: the input ends", &format!("offset {end}")]);
    }
    place.write("dump.rdb", b"REDI");
    place.run("load", &[place.file("dump.rdb")]).failed(2, &["dump.rdb: "]);
    place.write("dump.rdb", b"REDIS0013");
    place.run("load", &[place.file("dump.rdb")]).failed(2, &["version 13", "12"]);
    let mut changed = small.clone();
    let at = changed.len() - 10;
    changed[at] ^= 1;
    place.write("dump.rdb", changed);
    place.run("load", &[place.file("dump.rdb")]).failed(2, &["dump.rdb: the checksum", "keys stored before: 2"]);
    let mut changed = small;
    let at = changed.len() - 11;
    changed[at] = 0xC7;
    place.write("dump.rdb", changed);
    place.run("load", &[place.file("dump.rdb")]).failed(2, &["a string in an unknown encoding before offset"]);
}

#[test]
fn unstorable_keys_are_skipped_on_request() {
    let stream = b"\x00\x00\x00\x00\x00";
    let mut file = FileWriter::new(Vec::new(), &[]).unwrap();
    let string = |file: &mut FileWriter<Vec<u8>>, db: u64, key: &[u8]| {
        file.begin(db, key, Kind::String, None).unwrap();
        file.write(b"\x01x").unwrap();
    };
    string(&mut file, 0, b"a");
    // A stream of the first form, as Redis 5 writes it.
    file.write(b"\x0F\x06stream").unwrap();
    file.write(stream).unwrap();
    string(&mut file, 16, b"beyond");
    string(&mut file, 1, &[b'k'; 65_535]);
    file.begin(1, b"twice", Kind::Set, None).unwrap();
    file.write(b"\x02\x01x\x01x").unwrap();
    string(&mut file, 1, b"b");
    let place = Place::in_memory();
    let file = place.write("dump.rdb", file.finish().unwrap());
    place.run("load", &[&file]).failed(2, &["'stream' of database 0", "a stream", "--skip-bad", "offset"]);
    let ended = place.run("load", &[file.to_str().unwrap(), "--skip-bad"]);
    let messages = ended.messages();
    ended.succeeded();
    for said in ["'beyond' of database 16", "the last one is 15", "65535", "'twice'", "there twice", "skipped 4 items"]
    {
        assert!(messages.contains(said), "'{said}' is missing: {messages}");
    }
    let found = read(&place.run("dump", &["--format", "rdb"]).succeeded());
    let keys: Vec<_> = found.keys().map(|(db, key)| (*db, &key[..])).collect();
    assert_eq!(keys, [(0, &b"a"[..]), (1, b"b")]);
    place.run("load", &[file.to_str().unwrap(), "--tree", "t"]).failed(2, &["--tree"]);
    place.run("dump", &["--format", "rdb", "--tree", "t"]).failed(2, &["--tree"]);
    place.run("dump", &["--format", "rdb", "--skip-damaged"]).failed(2, &["--skip-damaged"]);
}

/// A loader that is killed within a large collection leaves nothing of it, and the next one loads all.
#[test]
fn killed_load_is_done_again() {
    let (place, example) = (Place::in_memory(), example());
    for share in [3, 5, 7, 9] {
        let mut child = hikv("load", &place.store(), &["-"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&example[..example.len() * share / 10]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        drop(stdin);
        let found = read(&place.run("dump", &["--format", "rdb"]).succeeded());
        let wanted = wanted();
        assert!(found.iter().all(|(key, content)| wanted.get(key) == Some(content)), "a key is not whole");
    }
    place.run_with_input("load", &["-"], &example).succeeded();
    assert!(read(&place.run("dump", &["--format", "rdb"]).succeeded()) == wanted(), "the keys differ");
}

#[test]
fn engine_without_order_takes_strings_alone() {
    let place = Place::in_memory();
    let file = place.write(
        "dump.rdb",
        write(&[
            (0, "a", Kind::String, None, vec![Part::String(bytes("1"))]),
            (0, "s", Kind::Set, None, vec![Part::Member(bytes("x"))]),
            (2, "b", Kind::String, None, vec![Part::String(bytes("2"))]),
        ]),
    );
    let options = ["--engine", "rewo-hash"];
    place.run("load", &[&[file.to_str().unwrap()], &options[..]].concat()).failed(2, &["'s' of database 0", "order"]);
    place.run("load", &[file.to_str().unwrap(), "--skip-bad"]).succeeded();
    let found = read(&place.run("dump", &["--format", "rdb"]).succeeded());
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [(0, bytes("a")), (2, bytes("b"))]);
}
