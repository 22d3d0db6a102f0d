//! Damage to the hash index.

use hikv::{Damage, Store};

use crate::bad_files::store::{Closed, ITEM_COUNT, assert_holds, key, verify};

/// The one segment of a new store with one partition: the first slot of the first chunk.
pub(crate) const SEGMENT: usize = 65_536 + 16_384;
const SEGMENT_BYTES: usize = 16_384;
const HEADER_BYTES: usize = 64;

#[test]
fn segment_header_bit_flips_are_refused() {
    let store = Closed::new();
    let whole = store.bytes();
    for at in [0, 1, 2, 5, 7, 8, 14] {
        store.flip(SEGMENT + at);
        store.assert_refused(&["store.hikv", "damaged", &format!("{SEGMENT:#x}"), "segment"]);
        store.alter(|bytes| bytes.clone_from(&whole));
    }
    store.assert_intact();
}

#[test]
fn partition_without_segment_is_refused() {
    let store = Closed::new();
    store.alter(|bytes| bytes[SEGMENT..SEGMENT + HEADER_BYTES].fill(0));
    store.assert_refused(&["store.hikv", "damaged", "no segment"]);
}

#[test]
fn flipped_split_record_bit_is_refused() {
    let store = Closed::new();
    store.flip(16_384 + 24);
    store.assert_refused(&["store.hikv", "damaged", "0x4000", "split record"]);
}

/// Returns the offsets of some used entries: signature and position.
pub(crate) fn entries(region: &[u8]) -> Vec<(usize, usize)> {
    let lines = (SEGMENT + HEADER_BYTES..SEGMENT + SEGMENT_BYTES).step_by(64);
    let slots = lines.flat_map(|line| (0..4).map(move |i| (line + i * 8, line + 32 + i * 8)));
    slots.filter(|&(_, position)| region[position..position + 6] != [0; 6]).collect()
}

/// Returns the findings of a check after `at` was changed by `flip`. No operation may panic.
fn damage_after(store: &Closed, at: usize, flip: u8) -> Vec<Damage> {
    let whole = store.bytes();
    store.alter(|bytes| bytes[at] ^= flip);
    let open = Store::open(store.path()).unwrap();
    (0..ITEM_COUNT).for_each(|i| {
        let _ = open.get(key(i));
    });
    let report = verify(&open);
    drop(open);
    store.alter(|bytes| bytes.clone_from(&whole));
    report.damage
}

#[test]
fn flipped_bit_of_signature_is_found() {
    let store = Closed::new();
    for (signature, _) in entries(&store.bytes()).into_iter().step_by(29) {
        for byte in [0, 4, 7] {
            let damage = damage_after(&store, signature + byte, 0x10);
            assert!(damage.iter().any(|damage| damage.what.contains("signature") || damage.what.contains("search")));
        }
    }
}

#[test]
fn flipped_bit_of_offset_is_found() {
    let store = Closed::new();
    for (_, position) in entries(&store.bytes()).into_iter().step_by(29) {
        for byte in 0..6 {
            assert_ne!(damage_after(&store, position + byte, 0x10), vec![], "byte {byte} of {position:#x}");
        }
    }
}

#[test]
fn entry_without_size_class_is_found() {
    let store = Closed::new();
    let (_, position) = entries(&store.bytes())[0];
    assert_ne!(damage_after(&store, position + 7, 0x10), vec![]);
}

/// Marks of an unfinished word and of an unfinished batch together. A reader of a read-only store can remove neither,
/// and must not loop forever.
#[test]
fn impossible_marks_block_no_reader() {
    const FRESH_AND_IN_BATCH: u8 = 0b101;
    let store = Closed::new();
    store.alter(|bytes| {
        entries(&bytes.clone()).iter().for_each(|(_, position)| bytes[position + 6] |= FRESH_AND_IN_BATCH)
    });
    let open = Store::open_read_only(store.path()).unwrap();
    assert_holds(&open, 0..ITEM_COUNT);
}
