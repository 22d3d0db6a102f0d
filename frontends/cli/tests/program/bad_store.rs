//! Tests damaged and foreign files: the error names the file and the fault, and the file does not change.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::support::Place;

/// The offsets of both copies of the superblock.
const SUPERBLOCK_OFFSETS: [u64; 2] = [0, 4096];
/// The offset of the format's major version within a copy.
const MAJOR_OFFSET: u64 = 8;

/// Creates a store of 1,000 items.
fn filled() -> Place {
    let place = Place::new();
    let text: String = (0..1_000).map(|number| format!("key-{number}\tvalue-{number}-{}\n", "v".repeat(100))).collect();
    place.run_with_input("load", &["-"], text.as_bytes()).succeeded();
    place
}

fn region(place: &Place) -> PathBuf {
    place.store().join("store.hikv")
}

/// Checks that every command that opens a store ends with 2 and `words`, and that the region does not change.
fn refused(place: &Place, words: &[&str]) {
    let before = fs::read(region(place)).unwrap();
    for (command, arguments) in [("get", &["key-1"][..]), ("put", &["k", "v"]), ("check", &[]), ("serve", &[])] {
        place.run(command, arguments).failed(2, &[&["store.hikv"], words].concat());
    }
    assert!(fs::read(region(place)).unwrap() == before, "a refused store was changed");
}

#[test]
fn foreign_file_is_refused() {
    let place = filled();
    let text = "not a store\n".repeat(400_000);
    fs::write(region(&place), text).unwrap();
    refused(&place, &["not a hikv store"]);
}

#[test]
fn an_empty_file_is_refused() {
    let place = filled();
    fs::write(region(&place), "").unwrap();
    refused(&place, &["only 0"]);
}

#[test]
fn truncated_file_is_refused_with_both_lengths() {
    let place = filled();
    let file = File::options().write(true).open(region(&place)).unwrap();
    let len_bytes = file.metadata().unwrap().len();
    file.set_len(len_bytes / 2).unwrap();
    refused(&place, &[&len_bytes.to_string(), &(len_bytes / 2).to_string()]);
}

#[test]
fn newer_format_is_refused_with_its_number() {
    let place = filled();
    let file = File::options().write(true).open(region(&place)).unwrap();
    for copy in SUPERBLOCK_OFFSETS {
        file.write_all_at(&[7, 0], copy + MAJOR_OFFSET).unwrap();
    }
    refused(&place, &["format 7"]);
}

#[test]
fn superblock_survives_one_bit_flip_not_two() {
    let place = filled();
    flip(&place, SUPERBLOCK_OFFSETS[0] + 20);
    assert!(place.run("get", &["key-1"]).succeeded().starts_with(b"value-1-"));
    let place = filled();
    for copy in SUPERBLOCK_OFFSETS {
        flip(&place, copy + 20);
    }
    refused(&place, &["damaged at offset"]);
}

#[test]
fn flipped_value_bit_is_located_by_check() {
    let place = filled();
    let bytes = fs::read(region(&place)).unwrap();
    let value = bytes.windows(10).position(|window| window == b"value-77-v").unwrap() as u64;
    flip(&place, value + 50);
    let ended = place.run("check", &["--deep"]);
    let report = String::from_utf8(ended.0.stdout.clone()).unwrap();
    ended.failed(1, &["store", "damaged in 1 place"]);
    let damage = report.lines().find_map(|line| line.strip_prefix("damage at offset 0x")).unwrap();
    let offset = u64::from_str_radix(damage.split(':').next().unwrap(), 16).unwrap();
    assert!((value - 64..=value + 50).contains(&offset), "the value is at {value:#x}: {report}");
    assert!(place.run("get", &["key-78"]).succeeded().starts_with(b"value-78-"), "the others are still served");
}

fn flip(place: &Place, offset: u64) {
    let file = File::options().read(true).write(true).open(region(place)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}
