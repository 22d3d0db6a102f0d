//! The space of cleared items is returned, read-only stores are not compacted, and a copy with more holes is complete.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use hikv::{Error, MediumError, Options, Store};

use crate::compaction::{allocated_bytes, assert_sound, compact_until, place, wait_until};

fn filled(options: &Options, place: &tempfile::TempDir) -> Store {
    let store = options.open(place.path()).unwrap();
    for number in 0..20_000u64 {
        store.put(number.to_be_bytes(), [7; 1_500]).unwrap();
    }
    store.put("large", vec![7; 5 << 20]).unwrap();
    store
}

#[test]
fn cleared_store_frees_its_space() {
    let place = place();
    let store = filled(&Options::new(), &place);
    assert!(allocated_bytes(&store) > 30 << 20);
    store.clear().unwrap();
    wait_until("space given back", || allocated_bytes(&store) < 10 << 20);
    store.put("again", "1").unwrap();
    assert_eq!(store.len().unwrap(), 1);
}

#[test]
fn without_threshold_only_requests_free_space() {
    let place = place();
    let store = filled(&Options::new().tuning(|tuning| tuning.compact_above(None)), &place);
    store.clear().unwrap();
    assert!(allocated_bytes(&store) > 30 << 20);
    compact_until(&store, || allocated_bytes(&store) < 10 << 20);
}

#[test]
fn store_that_is_read_is_not_compacted() {
    let place = place();
    filled(&Options::new(), &place).close().unwrap();
    let store = Store::open_read_only(place.path()).unwrap();
    assert!(matches!(store.compact(|_| {}), Err(Error::Medium(MediumError::ReadOnly))));
}

#[test]
fn ratio_below_one_is_refused() {
    let place = place();
    for ratio in [0.9, f64::NAN, f64::INFINITY] {
        let refused = Options::new().tuning(|tuning| tuning.compact_above(ratio)).open(place.path()).unwrap_err();
        assert!(refused.to_string().contains(&ratio.to_string()), "{refused}");
    }
}

const PAGE_BYTES: usize = 4_096;

/// Copies everything except pages of zeros, which become holes.
fn copy_sparsely(from: &std::path::Path, to: &std::path::Path) {
    let bytes = fs::read(from).unwrap();
    let copy = File::create_new(to).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    for (page, content) in bytes.chunks(PAGE_BYTES).enumerate().filter(|(_, content)| content.iter().any(|&b| b != 0)) {
        copy.write_all_at(content, (page * PAGE_BYTES) as u64).unwrap();
    }
}

/// Values of zeros, and slots that were never used: holes within chunks, which are filled when the copy is opened.
#[test]
fn sparse_copy_is_complete_and_writable() {
    let (place, other) = (place(), crate::compaction::place());
    let options = Options::new().tuning(|tuning| tuning.compact_above(None));
    let store = filled(&options, &place);
    (0..20_000u64).step_by(2).for_each(|number| store.put(number.to_be_bytes(), [0; 9_000]).unwrap());
    store.compact(|_| {}).unwrap();
    store.close().unwrap();
    copy_sparsely(&place.path().join("store.hikv"), &other.path().join("store.hikv"));
    let copied_bytes = fs::metadata(other.path().join("store.hikv")).map(|found| found.blocks() * 512).unwrap();
    let copy = options.open(other.path()).unwrap();
    assert!(allocated_bytes(&copy) > copied_bytes + (10 << 20), "holes in chunks were left");
    (0..20_000u64).for_each(|number| copy.put(number.to_be_bytes(), [7; 1_500]).unwrap());
    assert_sound(&copy);
}
