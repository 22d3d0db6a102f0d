//! Damage to the head of a region: superblock, state words, chunk headers.

use hikv::Store;
use pmem::crc32c;

use crate::bad_files::store::{Closed, verify};

const COPIES: [usize; 2] = [0, 4_096];
const CHECKSUM: usize = 72;
const FIRST_CHUNK: usize = 65_536;

#[test]
fn one_bad_superblock_copy_is_repaired() {
    for copy in COPIES {
        for at in [0, 8, 16, 40, 56, 64, CHECKSUM] {
            let store = Closed::new();
            let whole = store.bytes();
            store.flip(copy + at);
            let damage = verify(&Store::open_read_only(store.path()).unwrap()).damage;
            assert_eq!(damage.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [copy as u64], "{damage:?}");
            drop(Store::open(store.path()).unwrap());
            store.assert_intact();
            let repaired = store.bytes();
            assert_eq!(repaired[copy..copy + 128], whole[copy..copy + 128], "byte {at} of the copy at {copy}");
        }
    }
}

#[test]
fn two_bad_superblock_copies_are_refused() {
    let store = Closed::new();
    let whole = store.bytes();
    for pair in [[16, 16], [CHECKSUM, 56], [0, 40], [32, 0]] {
        store.flip(COPIES[0] + pair[0]);
        store.flip(COPIES[1] + pair[1]);
        store.assert_refused(&["store.hikv", "damaged", "0x0", "superblock"]);
        store.alter(|bytes| bytes.clone_from(&whole));
    }
    store.assert_intact();
}

/// Sets a field in both copies, with a matching checksum.
fn forge(store: &Closed, at: usize, field: &[u8]) {
    store.alter(|bytes| {
        for copy in COPIES {
            bytes[copy + at..copy + at + field.len()].copy_from_slice(field);
            let checksum = crc32c(0, &bytes[copy..copy + CHECKSUM]);
            bytes[copy + CHECKSUM..copy + CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
        }
    });
}

#[test]
fn newer_format_is_refused() {
    let store = Closed::new();
    forge(&store, 8, &7u16.to_le_bytes());
    store.assert_refused(&["store.hikv", "format 7", "up to 1"]);
    // The checksum may have another meaning in that version.
    COPIES.iter().for_each(|copy| store.flip(copy + CHECKSUM));
    store.assert_refused(&["format 7", "up to 1"]);
}

#[test]
fn newer_minor_version_opens_and_stays_newer() {
    let store = Closed::new();
    forge(&store, 10, &9u16.to_le_bytes());
    store.assert_intact();
    assert_eq!(store.bytes()[10..12], 9u16.to_le_bytes());
}

#[test]
fn an_unknown_feature_is_refused() {
    let store = Closed::new();
    forge(&store, 52, &0x1800u32.to_le_bytes());
    store.assert_refused(&["store.hikv", "features", "0x1800"]);
}

#[test]
fn another_engine_is_refused() {
    let store = Closed::new();
    forge(&store, 12, &9u32.to_le_bytes());
    store.assert_refused(&["store.hikv", "engine number 9", "not to hikv"]);
}

#[test]
fn impossible_parameters_are_refused() {
    for (at, field) in [(40, 0u32), (40, 257), (40, 3), (44, 4_096), (48, 4_096)] {
        let store = Closed::new();
        forge(&store, at, &field.to_le_bytes());
        store.assert_refused(&["store.hikv", "damaged"]);
    }
    let store = Closed::new();
    forge(&store, 56, &100u64.to_le_bytes());
    store.assert_refused(&["damaged", "0x38", "length"]);
}

/// A check covers every bit of the head's words and of the first chunk's header.
#[test]
fn flipped_checked_word_bits_are_refused() {
    let places = [(8_192, "format mark"), (8_256, "high-water mark"), (8_320, "generation"), (FIRST_CHUNK, "chunk")];
    for (at, name) in places {
        let store = Closed::new();
        let whole = store.bytes();
        for bit in [0, 7, 16, 33, 47, 48, 63] {
            store.alter(|bytes| bytes[at + bit / 8] ^= 1 << (bit % 8));
            store.assert_refused(&["store.hikv", "damaged", &format!("{at:#x}"), name]);
            store.alter(|bytes| bytes.clone_from(&whole));
        }
        store.assert_intact();
    }
}

#[test]
fn wrong_mark_is_refused() {
    for (units, what) in [(0, "before the first chunk"), (1 << 20, "beyond the region's end")] {
        let store = Closed::new();
        store.alter(|bytes| bytes[8_256..8_264].copy_from_slice(&pmem::seal(units).to_le_bytes()));
        store.assert_refused(&["store.hikv", "0x2040", what]);
    }
}
