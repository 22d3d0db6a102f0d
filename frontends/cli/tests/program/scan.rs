//! Tests `scan`: items in key order.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Ended, Place, hikv};

/// Creates a store of `b/1` to `b/3`, `a`, `c`, and a key and a value of unusual bytes.
fn filled() -> Place {
    let place = Place::new();
    place.run_with_input("load", &["-"], b"b/3\t33\nc\t4\nb/1\t31\n\\xff\\t\t\\n\\xfe\na\t1\nb/2\t32\n").succeeded();
    place
}

fn scanned(place: &Place, options: &[&str]) -> String {
    String::from_utf8(place.run("scan", options).succeeded()).unwrap()
}

#[test]
fn items_come_in_key_order() {
    let place = filled();
    let all = "a\t1\nb/1\t31\nb/2\t32\nb/3\t33\nc\t4\n\\xff\\t\t\\n\\xfe\n";
    assert_eq!(scanned(&place, &[]), all);
    let mut reversed: Vec<&str> = all.lines().collect();
    reversed.reverse();
    assert!(scanned(&place, &["--reverse"]).lines().eq(reversed));
}

#[test]
fn dump_selects_prefix_ends_and_limit() {
    let place = filled();
    for (options, expected) in [
        (&["--prefix", "b/"][..], "b/1\t31\nb/2\t32\nb/3\t33\n"),
        (&["--prefix", "b/", "--reverse", "--limit", "2"], "b/3\t33\nb/2\t32\n"),
        (&["--prefix", "d"], ""),
        (&["--from", "b/2", "--to", "c"], "b/2\t32\nb/3\t33\n"),
        (&["--from", "b/2", "--to", "c", "--reverse"], "b/3\t33\nb/2\t32\n"),
        (&["--from", "b/", "--limit", "1"], "b/1\t31\n"),
        (&["--to", "b/1"], "a\t1\n"),
        (&["--from", "c", "--to", "c"], ""),
        (&["--limit", "0"], ""),
    ] {
        assert_eq!(scanned(&place, options), expected, "{options:?}");
    }
}

#[test]
fn items_print_escaped_or_raw() {
    let place = filled();
    let last = ["--reverse", "--limit", "1", "--format"];
    let written = |format| place.run("scan", &[&last[..], &[format]].concat()).succeeded();
    assert_eq!(written("tsv"), b"\\xff\\t\t\\n\\xfe\n");
    assert_eq!(written("csv"), b"\xff\t,\"\n\xfe\"\n");
    assert_eq!(written("jsonl"), b"{\"key_base64\":\"/wk=\",\"value_base64\":\"Cv4=\"}\n");
    assert_eq!(written("raw"), b"\xff\t\t\n\xfe\n");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let place = filled();
    place.run("scan", &["--from", "b", "--to", "a"]).failed(2, &["from 'b'", "to 'a'", "--reverse"]);
    for options in [&["--prefix", "b", "--from", "b/2"][..], &["--prefix", "b", "--to", "b/2"], &["--limit", "-1"]] {
        assert_eq!(place.run("scan", options).0.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn missing_store_is_not_made() {
    let place = Place::new();
    place.run("scan", &[""; 0]).failed(2, &["there is no store"]);
    assert!(!place.store().exists());
}

#[test]
fn progress_is_shown_without_terminal() {
    let place = filled();
    let messages = place.run("scan", &["--progress-every", "0"]).messages();
    let lines: Vec<&str> = messages.lines().collect();
    for said in ["ordered 6 items, ", "ordered 6 items in ", "scanned 1 item, ", "scanned 6 items in "] {
        assert!(lines.iter().any(|line| line.starts_with(said)), "'{said}' is missing: {messages}");
    }
}

#[test]
fn scan_whose_reader_goes_away_ends_quietly() {
    let place = Place::new();
    let text: String = (0..20_000).map(|number| format!("key-{number}\tvalue-{number}\n")).collect();
    place.run_with_input("load", &["-"], text.as_bytes()).succeeded();
    let mut scan = hikv("scan", &place.store(), &[""; 0]).stdin(Stdio::null()).spawn().unwrap();
    let mut out = scan.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let ended = Ended(scan.wait_with_output().unwrap());
    let messages = ended.messages();
    assert!(messages.lines().all(|line| line.starts_with("ordered 20,000 items in ")), "{messages}");
    ended.succeeded();
}
