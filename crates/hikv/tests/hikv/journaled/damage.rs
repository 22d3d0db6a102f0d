//! Logs that are truncated, changed, mixed up or missing.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use hikv::repair::{RepairEvent, RepairReport, repair};
use hikv::{Durability, OpenError, Options, Store};
use journal::layout::{FRAME_HEADER_BYTES, FRAMES_START_BYTES};

use crate::journaled::{Place, buffered, copied};

const ITEM_COUNT: u32 = 100;
const SEGMENT_BYTES: usize = 4 << 20;

/// Returns a store as a killed process leaves it: its log has all items, at most one per frame.
fn left_by_a_killed_process(durability: Durability) -> Place {
    let place = Place::new();
    // Below `power`, no thread syncs during the test.
    let store = place.open(&buffered().durability(durability).sync_interval(Duration::from_secs(1 << 20)));
    (0..ITEM_COUNT).for_each(|i| store.put(i.to_le_bytes(), [i as u8; 100]).unwrap());
    copied(&place)
}

/// Returns the number of items. They must be the first ones that were put.
fn item_count(place: &Place) -> u32 {
    let store = place.open(&buffered());
    let count = (0..ITEM_COUNT).take_while(|i| store.contains(i.to_le_bytes()).unwrap()).count() as u32;
    assert!((count..ITEM_COUNT).all(|i| !store.contains(i.to_le_bytes()).unwrap()), "an item without those before it");
    assert_eq!(store.len().unwrap(), u64::from(count));
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
    store.put("after", "all").unwrap();
    count
}

/// Returns the offsets of frames in the newest segment.
fn frames(place: &Place) -> Vec<usize> {
    let log = fs::read(place.log()).unwrap();
    let is_newest = |start: &usize| log[start + FRAMES_START_BYTES as usize + 4..][..4] != [0; 4];
    let start = (0..log.len()).step_by(SEGMENT_BYTES).rev().find(is_newest).unwrap();
    let mut at = start + FRAMES_START_BYTES as usize;
    let mut frames = Vec::new();
    while let len @ 1.. = u32::from_le_bytes(log[at + 4..][..4].try_into().unwrap()) as usize {
        frames.push(at);
        at += FRAME_HEADER_BYTES + len;
    }
    frames
}

fn flip(place: &Place, at: usize) {
    let log = File::options().read(true).write(true).open(place.log()).unwrap();
    let mut byte = [0];
    log.read_exact_at(&mut byte, at as u64).unwrap();
    log.write_all_at(&[byte[0] ^ 1], at as u64).unwrap();
}

/// Nothing was synced: a missing frame may not have been written completely.
#[test]
fn unsynced_log_is_replayed_to_first_damage() {
    let whole = left_by_a_killed_process(Durability::Buffered);
    let all = frames(&whole);
    assert!(all.len() >= ITEM_COUNT as usize, "{} frames", all.len());
    let mut counts = Vec::new();
    for (i, &at) in all.iter().enumerate().step_by(7) {
        let damaged = copied(&whole);
        flip(&damaged, at + i % FRAME_HEADER_BYTES + FRAME_HEADER_BYTES * (i % 2));
        counts.push(item_count(&damaged));
    }
    assert!(counts.is_sorted() && counts[0] == 0 && *counts.last().unwrap() > ITEM_COUNT / 2, "{counts:?}");
    assert_eq!(item_count(&whole), ITEM_COUNT);
}

/// Repairs the store. Returns the new store, the report, and the texts about the journal.
fn repaired(place: &Place) -> (Place, RepairReport, Vec<String>) {
    let (out, mut missing) = (Place::new(), Vec::new());
    let report = repair(place.path(), out.path(), |event| {
        if let RepairEvent::Missing(found) = event {
            assert_eq!(found.path, place.log());
            missing.push(found.what);
        }
        ControlFlow::Continue(())
    });
    (out, report.unwrap(), missing)
}

fn items(place: &Place) -> Vec<u32> {
    let store = place.open(&buffered());
    let is_whole = |i: &u32| {
        let value = store.get(i.to_le_bytes()).unwrap();
        assert!(value.as_ref().is_none_or(|value| *value == [*i as u8; 100]), "item {i}");
        value.is_some()
    };
    (0..ITEM_COUNT).filter(is_whole).collect()
}

#[test]
fn damaged_synced_log_is_refused_and_repaired() {
    let whole = left_by_a_killed_process(Durability::Power);
    let all = frames(&whole);
    assert!(all.len() >= ITEM_COUNT as usize, "{} frames", all.len());
    for (i, &at) in all[..all.len() - 1].iter().enumerate().step_by(13) {
        let damaged = copied(&whole);
        flip(&damaged, at + i % FRAME_HEADER_BYTES + FRAME_HEADER_BYTES * (i % 2));
        let behind = format!("behind it: {}", all.len() - 1 - i);
        refused(&damaged, &[&format!("byte {at:#x}"), "was durable", &behind]);
        let (out, report, missing) = repaired(&damaged);
        assert!(missing.len() == 1 && missing[0].contains(&behind), "{missing:?}");
        assert!(report.lost_count >= 1, "{report:?}");
        let left = items(&out);
        assert!(left.len() as u32 >= ITEM_COUNT - 2, "{left:?} of {} frames without number {i}", all.len());
    }
    // The last frame may not have been written completely when the power failed.
    let damaged = copied(&whole);
    flip(&damaged, all[all.len() - 1]);
    assert_eq!(item_count(&damaged), ITEM_COUNT - 1);
}

#[test]
fn repair_without_journal_reports_missing() {
    let place = left_by_a_killed_process(Durability::Power);
    let checkpointed = place.open(&buffered());
    checkpointed.put("more", "of it").unwrap();
    drop(checkpointed);
    let [gone, empty, foreign] = std::array::from_fn(|_| copied(&place));
    fs::remove_file(gone.log()).unwrap();
    fs::write(empty.log(), "").unwrap();
    fs::copy(left_by_a_killed_process(Durability::Power).log(), foreign.log()).unwrap();
    for (place, words) in [(gone, "missing"), (empty, "no intact segment"), (foreign, "another store")] {
        let (out, report, missing) = repaired(&place);
        assert!(missing.len() == 1 && missing[0].contains(words), "{missing:?}");
        assert_eq!((report.items, report.lost_count), (u64::from(ITEM_COUNT) + 1, 1));
        assert_eq!(items(&out).len() as u32, ITEM_COUNT);
    }
}

#[test]
fn headerless_segment_is_refused_and_salvaged() {
    let place = left_by_a_killed_process(Durability::Power);
    let newest = frames(&place)[0] - FRAMES_START_BYTES as usize;
    flip(&place, newest + 33);
    refused(&place, &["header", &format!("byte {newest:#x}")]);
    let (out, report, missing) = repaired(&place);
    assert_eq!((missing.len(), report.lost_count, items(&out).len() as u32), (1, 1, ITEM_COUNT));
}

fn refused(place: &Place, words: &[&str]) {
    let before = ["store.hikv", "journal.hikv"].map(|name| fs::read(place.path().join(name)).unwrap());
    for error in [Store::open(place.path()).unwrap_err(), Store::open_read_only(place.path()).unwrap_err()] {
        assert!(matches!(error, OpenError::Journal { .. } | OpenError::Io { .. }), "{error:?}");
        let text = error.to_string();
        for word in ["journal.hikv"].iter().chain(words) {
            assert!(text.contains(word), "'{word}' is missing: {text}");
        }
    }
    assert!(before == ["store.hikv", "journal.hikv"].map(|name| fs::read(place.path().join(name)).unwrap()));
}

#[test]
fn log_without_header_is_refused() {
    let place = left_by_a_killed_process(Durability::Power);
    let log_bytes = fs::metadata(place.log()).unwrap().len();
    let log = File::options().write(true).open(place.log()).unwrap();
    (0..log_bytes).step_by(SEGMENT_BYTES).for_each(|start| log.write_all_at(&[0; 64], start).unwrap());
    refused(&place, &["damaged", "header"]);
    let (out, report, missing) = repaired(&place);
    assert!(!missing.is_empty() && report.lost_count == missing.len() as u64, "{missing:?}");
    assert_eq!(items(&out).len() as u32, ITEM_COUNT);
    fs::write(place.log(), "").unwrap();
    refused(&place, &["was interrupted"]);
}

#[test]
fn journal_of_newer_version_is_refused() {
    let place = left_by_a_killed_process(Durability::Power);
    let log = File::options().read(true).write(true).open(place.log()).unwrap();
    for start in [0, SEGMENT_BYTES as u64] {
        let mut header = [0; 72];
        log.read_exact_at(&mut header, start).unwrap();
        header[8] = 9;
        let checksum = pmem::crc32c(0, &header[..68]);
        header[68..].copy_from_slice(&checksum.to_le_bytes());
        log.write_all_at(&header, start).unwrap();
    }
    refused(&place, &["version 9", "versions 1 to 3"]);
}

#[test]
fn segment_that_is_gone_is_refused() {
    let place = Place::new();
    let store = Options::new().durability(hikv::Durability::Buffered).open(place.path()).unwrap();
    (0..3_000u32).for_each(|i| store.put(i.to_le_bytes(), [i as u8; 4_000]).unwrap());
    let copy = copied(&place);
    let log = File::options().write(true).open(copy.log()).unwrap();
    log.write_all_at(&[0; 64], SEGMENT_BYTES as u64).unwrap();
    refused(&copy, &["damaged"]);
}

#[test]
fn base_that_is_cut_is_refused() {
    let place = left_by_a_killed_process(Durability::Power);
    let base = File::options().write(true).open(place.path().join("store.hikv")).unwrap();
    let len_bytes = base.metadata().unwrap().len().to_string();
    base.set_len(1 << 20).unwrap();
    let error = Store::open(place.path()).unwrap_err().to_string();
    for word in ["store.hikv", len_bytes.as_str(), "1048576"] {
        assert!(error.contains(word), "'{word}' is missing: {error}");
    }
}
