//! Tests `load` and `dump`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::{fs, iter};

use proptest::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ended, Place, hikv};

fn load(place: &Place, file: &Path, options: &[&str]) -> Ended {
    place.run("load", &[&[file.to_str().unwrap()], options].concat())
}

/// Returns the lines of a dump, sorted.
fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

#[test]
fn each_format_is_loaded_and_dumped() {
    let texts = [
        ("items.tsv", "a\\0\t1\nb\t2\\n\n"),
        ("items.csv", "a,1\n\"b,\",\"2\n\"\n"),
        ("items.jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key_base64\":\"/w==\",\"value\":\"2\"}\n"),
    ];
    for (name, text) in texts {
        let place = Place::new();
        let ended = load(&place, &place.write(name, text), &[]);
        assert!(ended.messages().contains("loaded 2 items in "), "{}", ended.messages());
        ended.succeeded();
        let dumped = place.file(&format!("dumped-{name}"));
        place.run("dump", &[dumped.to_str().unwrap(), "--bare"]).succeeded();
        assert_eq!(sorted(&std::fs::read(dumped).unwrap()), sorted(text.as_bytes()));
    }
}

/// Returns lines of many lengths, at most a few pages each. Exception: two are longer than one read of `load`.
fn random_lines(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let line = |number: usize| {
        let bytes_max = random.usize(1..4_000);
        let value_bytes = if number % 1_000 == 7 { 600_000 } else { random.usize(..bytes_max) };
        let value: Vec<u8> = iter::repeat_with(|| random.alphanumeric() as u8).take(value_bytes).collect();
        [format!("key:{number:06}\t").as_bytes(), &value, b"\n"].concat()
    };
    (0..2_000).map(line).collect()
}

#[test]
fn lines_from_any_pipe_are_whole() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let lines = random_lines(&mut random);
    let place = Place::new();
    let mut child = hikv("load", &place.store(), &["-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = lines.concat();
    let mut rest = &text[..];
    while !rest.is_empty() {
        let bytes_max = random.usize(2..100_000).min(rest.len() + 1);
        let (piece, behind) = rest.split_at(random.usize(1..bytes_max));
        stdin.write_all(piece).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        rest = behind;
        // A stopped process that continues has its wait for input interrupted.
        if random.u8(..) < 16 {
            let loading = Pid::from_child(&child);
            kill_process(loading, Signal::STOP).and_then(|()| kill_process(loading, Signal::CONT)).unwrap();
        }
    }
    drop(stdin);
    let ended = Ended(child.wait_with_output().unwrap());
    assert!(ended.0.status.success(), "seed {seed}: {}", ended.messages());
    let dumped = place.run("dump", &["--bare"]).succeeded();
    assert!(sorted(&dumped) == sorted(&text), "seed {seed}: other items are in the store");
}

#[test]
fn later_line_replaces_earlier_one() {
    let place = Place::new();
    place.run_with_input("load", &["-"], b"k\told\nk\tnew\n").succeeded();
    assert_eq!(place.run("dump", &["--bare"]).succeeded(), b"k\tnew\n");
}

#[test]
fn malformed_line_is_named_earlier_ones_stay() {
    let place = Place::new();
    let file = place.write("items.csv", "a,1\n\"b\n\nc\",2\nbad\nd,4\n");
    load(&place, &file, &[]).failed(2, &["items.csv:5: expected two columns"]);
    assert_eq!(
        sorted(&place.run("dump", &["--bare", "--format", "tsv"]).succeeded()),
        [&b"a\t1\n"[..], b"b\\n\\nc\t2\n"]
    );
}

#[test]
fn malformed_lines_are_skipped_on_request() {
    let place = Place::new();
    let file = place.write("items", "a\t1\nbad\nb\t2\n\\worse\t\n");
    let ended = load(&place, &file, &["--format", "tsv", "--skip-bad"]);
    let messages = ended.messages();
    for said in ["items:2: ", "items:4: ", "skipped 2 items", "loaded 2 items"] {
        assert!(messages.contains(said), "'{said}' is missing: {messages}");
    }
    ended.succeeded();
    assert_eq!(place.run("get", &["b"]).succeeded(), b"2");
}

#[test]
fn too_long_key_is_named_by_line() {
    let place = Place::new();
    let file = place.write("items.tsv", format!("a\t1\n{}\t2\nb\t3\n", "k".repeat(65_536)));
    load(&place, &file, &[]).failed(2, &["items.tsv:2: ", "65536"]);
    place.run("get", &["b"]).failed(1, &["'b'"]);
    load(&place, &file, &["--skip-bad"]).succeeded();
    assert_eq!(place.run("get", &["b"]).succeeded(), b"3");
}

#[test]
fn unknown_format_is_refused_before_store() {
    let place = Place::new();
    load(&place, &place.write("items.txt", "a\t1\n"), &[]).failed(2, &["items.txt", "--format"]);
    load(&place, &place.file("missing.tsv"), &[]).failed(2, &["missing.tsv", "No such file"]);
    assert!(!place.store().exists());
}

#[test]
fn progress_is_plain_lines_off_a_terminal() {
    let place = Place::new();
    let file = place.write("items.tsv", "a\t1\nb\t2\nc\t3\n");
    let ended = load(&place, &file, &["--progress-every", "0"]);
    let messages = ended.messages();
    ended.succeeded();
    let lines: Vec<&str> = messages.lines().collect();
    assert_eq!(lines.len(), 5, "{messages}");
    for (line, said) in
        lines.iter().zip(["loaded 1 item, ", "loaded 2 items, ", "loaded 3 items, ", "loaded 3 items in "])
    {
        assert!(line.starts_with(said), "{messages}");
    }
    assert!(lines[4].contains("last line of a dump"), "{messages}");
    assert!(lines[1].contains("66 %") && lines[1].ends_with(" left"), "{messages}");
}

#[test]
fn dump_whose_reader_goes_away_ends_quietly() {
    let place = Place::new();
    let text: String = (0..20_000).map(|number| format!("key-{number}\tvalue-{number}\n")).collect();
    place.run_with_input("load", &["-"], text.as_bytes()).succeeded();
    let mut dump = hikv("dump", &place.store(), &["--bare"]).stdin(Stdio::null()).spawn().unwrap();
    let mut out = dump.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let ended = Ended(dump.wait_with_output().unwrap());
    assert_eq!(ended.messages(), "");
    ended.succeeded();
}

/// Creates a store of items of all lengths: empty, text, and a value that is dumped in pieces.
fn filled() -> Place {
    let place = Place::new();
    place.run_with_input("load", &["-"], b"a\t1\n\t\nb\\x00\t\\xff\n").succeeded();
    let large = place.write("large", [7; 300_000]);
    place.run("put", &["large", "--value-file", large.to_str().unwrap()]).succeeded();
    place
}

#[test]
fn binary_dump_is_recognised_in_pipe() {
    let (place, copy) = (filled(), Place::new());
    let expected = place.run("dump", &["--bare", "--format", "jsonl"]).succeeded();
    let dumped = place.run("dump", &["--format", "hikv"]).succeeded();
    let ended = copy.run_with_input("load", &["-"], &dumped);
    assert!(ended.messages().contains("loaded 4 items in "), "{}", ended.messages());
    ended.succeeded();
    assert_eq!(sorted(&copy.run("dump", &["--bare", "--format", "jsonl"]).succeeded()), sorted(&expected));
    let (named, other) = (place.file("items.hikv"), Place::new());
    place.run("dump", &[&named]).succeeded();
    load(&other, &named, &[]).succeeded();
    assert_eq!(sorted(&other.run("dump", &["--bare", "--format", "jsonl"]).succeeded()), sorted(&expected));
}

#[test]
fn damaged_binary_dump_is_named_with_offset() {
    let dumped = filled().run("dump", &["--format", "hikv"]).succeeded();
    let cut = dumped.len() - 1;
    let place = Place::new();
    load(&place, &place.write("cut", &dumped[..cut]), &[])
        .failed(2, &["cut: the dump is cut off at offset", &cut.to_string(), "; items stored before: 4"]);
    let mut flipped = dumped.clone();
    flipped[70] ^= 1;
    let place = Place::new();
    load(&place, &place.write("flipped", &flipped), &[])
        .failed(2, &["flipped: the dump is damaged at offset 64: ", "; items stored before: 0"]);
    let text = place.write("items.tsv", "a\t1\n");
    load(&place, &text, &["--format", "hikv"]).failed(2, &["items.tsv: this is no dump of hikv"]);
}

#[test]
fn damaged_store_makes_no_complete_dump() {
    let place = filled();
    let region = place.store().join("store.hikv");
    let mut bytes = std::fs::read(&region).unwrap();
    let value = bytes.windows(100).position(|window| window == [7; 100]).unwrap();
    bytes[value] ^= 1;
    std::fs::write(&region, bytes).unwrap();
    let ended = place.run("dump", &["--format", "hikv"]);
    let dumped = ended.0.stdout.clone();
    ended.failed(2, &["damaged at offset"]);
    let other = Place::new();
    other.run_with_input("load", &["-", "--format", "hikv"], &dumped).failed(2, &["standard input"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn dump_loads_back_whatever_bytes(
        items in proptest::collection::btree_map(any::<Vec<u8>>(), any::<Vec<u8>>(), 0..20),
        format in prop_oneof![Just("tsv"), Just("csv"), Just("jsonl")],
    ) {
        let (first, second) = (Place::new(), Place::new());
        first.run_with_input("load", &["-", "--format", "jsonl"], &as_jsonl(&items)).succeeded();
        let dumped = first.run("dump", &["--format", format]).succeeded();
        second.run_with_input("load", &["-", "--format", format], &dumped).succeeded();
        let text = second.run("dump", &["--bare", "--format", "jsonl"]).succeeded();
        let expected = as_jsonl(&items);
        prop_assert_eq!(sorted(&text), sorted(&expected));
    }
}

/// Formats items as `dump` writes them, in another order.
fn as_jsonl(items: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    use base64::Engine;
    let field = |name: &str, bytes: &[u8]| match str::from_utf8(bytes) {
        Ok(text) => format!("\"{name}\":{}", serde_json::Value::from(text)),
        Err(_) => format!("\"{name}_base64\":\"{}\"", base64::prelude::BASE64_STANDARD.encode(bytes)),
    };
    let line = |(key, value): (&Vec<u8>, &Vec<u8>)| format!("{{{},{}}}\n", field("key", key), field("value", value));
    items.iter().map(line).collect::<String>().into_bytes()
}

#[test]
fn stores_own_files_are_not_written_over() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let before = || ["store.hikv", "journal.hikv"].map(|name| fs::read(place.store().join(name)).unwrap());
    let bytes = before();
    let link = place.file("link.hikv");
    std::os::unix::fs::symlink(place.store().join("store.hikv"), &link).unwrap();
    let another = place.file("another");
    fs::create_dir(&another).unwrap();
    let [own, foreign] = ["a file of the store itself", "a store's file may have this name"];
    for (file, why) in [
        (place.store().join("store.hikv"), own),
        (place.store().join("journal.hikv"), own),
        (link, own),
        (another.join("store.hikv"), foreign),
        (another.join("journal.hikv"), foreign),
    ] {
        place.run("dump", &[&file]).failed(2, &[why]);
        let arguments = [place.file("out"), "--lost".into(), file];
        place.run("repair", &arguments).failed(2, &[why]);
    }
    assert_eq!(fs::read_dir(&another).unwrap().count(), 0, "nothing was made");
    assert!(before() == bytes, "a file has changed");
    assert_eq!(place.run("get", &["k"]).succeeded(), b"v");
}
