//! Tests the files that commands write: replaced completely or unchanged; and dumps that are cut off.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ended, Place, hikv};

/// More progress lines than a pipe holds, so that a dump waits until the test reads them.
const ITEM_COUNT: u32 = 5_000;

fn filled(place: &Place, count: u32) {
    let text: String = (0..count).map(|number| format!("key-{number}\tvalue-{number}\n")).collect();
    place.run_with_input("load", &["-", "--durability", "process"], text.as_bytes()).succeeded();
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn interrupted_dumps_leave_the_old_file() {
    for name in ["items.tsv", "items.hikv"] {
        let (place, dumps) = (Place::new(), Place::new());
        filled(&place, ITEM_COUNT);
        let file = dumps.write(name, "the last good dump");
        let mut dump =
            hikv("dump", &place.store(), &[file.to_str().unwrap(), "--progress-every", "0"]).spawn().unwrap();
        let mut messages = BufReader::new(dump.stderr.take().unwrap());
        messages.read_line(&mut String::new()).unwrap();
        kill_process(Pid::from_child(&dump), Signal::INT).unwrap();
        let last = messages.lines().map(Result::unwrap).last().unwrap();
        assert!(last.starts_with("hikv: interrupted: dumped "), "{last}");
        assert_eq!(dump.wait().unwrap().code(), Some(130));
        assert_eq!(fs::read(&file).unwrap(), b"the last good dump");
        assert_eq!(names_in(file.parent().unwrap()), [name]);
        place.run("dump", &[&file]).succeeded();
        Place::new().run("load", &[&file]).succeeded();
        assert_eq!(names_in(file.parent().unwrap()), [name]);
    }
}

#[test]
fn full_disks_leave_the_old_file() {
    let place = Place::new();
    filled(&place, ITEM_COUNT);
    Place::on_tmpfs(1, |small| {
        let file = small.write("items.jsonl", "the last good dump");
        // The remaining space is too small for the dump.
        small.write("others", vec![0; 900 << 10]);
        place.run("dump", &[&file]).failed(2, &["items.jsonl", "No space left"]);
        assert_eq!(fs::read(&file).unwrap(), b"the last good dump");
        assert_eq!(names_in(file.parent().unwrap()), ["items.jsonl", "others"]);
    });
}

#[test]
fn damaged_stores_leave_the_old_file() {
    let place = Place::new();
    let value: String = "valuable".repeat(1_000);
    place.run("put", &["key", &value]).succeeded();
    let region = place.store().join("store.hikv");
    let mut bytes = fs::read(&region).unwrap();
    let at = bytes.windows(16).position(|window| window == b"valuablevaluable").unwrap();
    bytes[at] ^= 1;
    fs::write(&region, bytes).unwrap();
    let file = place.write("items.tsv", "the last good dump");
    place.run("dump", &[&file]).failed(2, &["checksum"]);
    assert_eq!(fs::read(&file).unwrap(), b"the last good dump");
}

#[test]
fn dumps_go_to_pipes_and_through_links() {
    let place = Place::new();
    filled(&place, 3);
    let written = place.run("dump", &["/dev/stdout", "--format", "tsv"]).succeeded();
    assert_eq!(
        written.split(|byte| *byte == b'\n').count(),
        6,
        "two marks, three items, and nothing behind the last line"
    );
    let (file, link) = (place.write("file", "old"), place.file("link.tsv"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    place.run("dump", &[&link]).succeeded();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(file).unwrap().len(), written.len());
}

#[test]
fn cut_off_texts_are_reported() {
    let place = Place::new();
    filled(&place, 3);
    for format in ["tsv", "csv", "jsonl"] {
        let dumped = String::from_utf8(place.run("dump", &["--format", format]).succeeded()).unwrap();
        let lines: Vec<&str> = dumped.split_inclusive('\n').collect();
        assert_eq!(lines.len(), 5, "{dumped}");
        let load = |text: &[&str]| {
            Place::new().run_with_input("load", &["-", "--format", format, "--skip-bad"], text.concat().as_bytes())
        };
        load(&lines[..4]).failed(2, &["standard input:4: the dump is cut off after 3 items"]);
        load(&lines[..1]).failed(2, &["cut off after 0 items"]);
        load(&[&lines[..2], &lines[3..]].concat()).failed(2, &["had 3 items, but 2 are there"]);
        load(&[&lines[..3], &lines].concat()).failed(2, &["cut off after 2 items: another dump begins"]);
        load(&lines[1..]).failed(2, &["first line is missing"]);
        load(&[&lines[..], &lines].concat()).succeeded();
        let whole = load(&lines);
        assert!(!whole.messages().contains("last line"), "{}", whole.messages());
        whole.succeeded();
        let bare = load(&lines[1..4]);
        assert!(bare.messages().contains("last line of a dump"), "{}", bare.messages());
        bare.succeeded();
    }
}

#[test]
fn lists_of_findings_are_whole() {
    let place = Place::new();
    filled(&place, 3);
    let list = place.write("lost.jsonl", "an older list");
    let taken = place.write("taken", "");
    let arguments = [taken.to_str().unwrap(), "--lost", list.to_str().unwrap()];
    Ended(hikv("repair", &place.store(), &arguments).output().unwrap()).failed(2, &["taken"]);
    assert_eq!(fs::read(&list).unwrap(), b"an older list");
    let out = place.file("out");
    place.run("repair", &[out.to_str().unwrap(), "--lost", list.to_str().unwrap()]).succeeded();
    assert_eq!(fs::read(&list).unwrap(), b"");
}
