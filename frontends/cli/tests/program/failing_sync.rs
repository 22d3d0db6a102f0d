//! Tests commands with each of their syncs failing in turn: the command reports the failure, and the store that remains
//! is usable.

use std::process::Command;

use testkit::Extent;

use crate::strace::traced;
use crate::support::{Ended, Place, hikv};

/// Runs `command` with sync number `number` failing in each of its threads. Returns true if one failed; checks that the
/// command then reports it.
fn fails(place: &Place, command: &Command, number: u32) -> Option<bool> {
    let injection = format!("inject=fdatasync,fsync:error=EIO:when={number}");
    let (ended, trace) = traced(place, command, &["trace=fdatasync,fsync", &injection])?;
    let (ended, is_hit) = (Ended(ended), trace.contains("INJECTED"));
    if !is_hit {
        ended.succeeded();
        return Some(false);
    }
    let words = ended.messages();
    assert!(words.contains("error number 5") || words.contains("Input/output error"), "{number}: {words}\n{trace}");
    ended.failed(2, &[]);
    Some(true)
}

/// Creates a store with a key and a counter, and files for `batch` and `load`.
fn filled() -> Place {
    let place = Place::new();
    place.run("put", &["key", "old"]).succeeded();
    place.run("put", &["count", "1"]).succeeded();
    place.write("items.tsv", "key\tnew\nother\titem\n");
    place.write("changes.tsv", "put\tkey\tnew\nput\tother\titem\n");
    place
}

/// Commands that write, with arguments; the last two read a file.
const COMMANDS: [(&str, &[&str]); 8] = [
    ("put", &["key", "new"]),
    ("del", &["key"]),
    ("cas", &["key", "old", "new"]),
    ("incr", &["count"]),
    ("expire", &["key", "1000"]),
    ("persist", &["key"]),
    ("batch", &["changes.tsv"]),
    ("load", &["items.tsv"]),
];

/// Runs all commands at the level; in a sample, every third, from this number.
fn each_failing_sync_is_reported(level: &str, first: usize) {
    let (skipped, step) = Extent::pick((first, 3), (0, 1));
    for (name, arguments) in COMMANDS.into_iter().skip(skipped).step_by(step) {
        let place = filled();
        let in_place = |argument: &&str| match argument.ends_with(".tsv") {
            true => place.file(argument).to_str().unwrap().to_owned(),
            false => (*argument).to_owned(),
        };
        let mut all: Vec<String> = arguments.iter().map(in_place).collect();
        all.splice(0..0, ["--durability".to_owned(), level.to_owned()]);
        let mut hit_count = 0;
        for number in 1.. {
            place.run("put", &["--ttl", "1000", "key", "old"]).succeeded();
            match fails(&place, &hikv(name, &place.store(), &all), number) {
                None => return,
                Some(false) => break,
                Some(true) => hit_count += 1,
            }
        }
        assert!(hit_count > 1, "{name} at {level} syncs {hit_count} times");
        place.run("check", &["--deep"]).succeeded();
    }
}

#[test]
fn at_power() {
    each_failing_sync_is_reported("power", 0);
}

#[test]
fn at_buffered() {
    each_failing_sync_is_reported("buffered", 1);
}

#[test]
fn at_process() {
    each_failing_sync_is_reported("process", 2);
}

/// A failed command that creates or copies a store leaves no store, so it can be repeated.
#[test]
fn failing_create_leaves_no_store() {
    let place = filled();
    let out = place.file("deep/down/out");
    let step = Extent::pick(3, 1);
    for (name, source) in [("backup", place.store()), ("restore", place.store()), ("repair", place.store())] {
        for number in (1..).step_by(step) {
            match fails(&place, &hikv(name, &source, &[&out]), number) {
                None => return,
                Some(false) => break,
                Some(true) => assert!(!out.exists(), "{name} at sync {number} leaves a store"),
            }
        }
        assert!(hikv("check", &out, &["--deep"]).status().unwrap().success());
        std::fs::remove_dir_all(place.file("deep")).unwrap();
    }
    for number in (1..).step_by(step) {
        match fails(&place, &hikv("put", &out, &["key", "value"]), number) {
            Some(true) => assert!(hikv("put", &out, &["key", "again"]).status().unwrap().success()),
            Some(false) => break,
            None => return,
        }
        std::fs::remove_dir_all(place.file("deep")).unwrap();
    }
}
