//! The findings of a check of headers and of a full check. Neither changes anything.

use std::fs;

use hikv::{Damage, Store};
use pmem::crc32c;

use crate::bad_files::aged::{Aged, EXTENT_ITEM, End, ITEM_HEADER_BYTES, UNIT, key};

const KEY_COUNT: usize = 600;
const IMAGE_WORD: usize = 8_384;
const IMAGE_HEADER_BYTES: usize = 64;

/// Returns the findings of both checks in a read-only store with these bytes.
fn found(bytes: &[u8]) -> [Vec<Damage>; 2] {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("store.hikv");
    fs::write(&file, bytes).unwrap();
    let store = Store::open_read_only(home.path()).unwrap();
    let reports = [hikv::FrontEnd::of(&store).verify_headers(|_| {}).unwrap(), store.verify(|_| {}).unwrap()];
    assert_eq!(reports[0].items, reports[1].items);
    drop(store);
    assert!(fs::read(&file).unwrap() == bytes, "the check changed the store");
    reports.map(|report| report.damage)
}

fn offsets(damage: &[Damage]) -> Vec<usize> {
    damage.iter().map(|damage| damage.offset as usize).collect()
}

#[test]
fn whole_store_has_no_damage() {
    for end in [End::Closed, End::Killed] {
        assert_eq!(found(&Aged::new(KEY_COUNT, end).bytes), [vec![], vec![]]);
    }
}

#[test]
fn deep_check_also_finds_damaged_values() {
    for end in [End::Closed, End::Killed] {
        let store = Aged::new(KEY_COUNT, end);
        let item = store.places()[&key(7)];
        let [quick, deep] = found(&store.flipped(item, 30));
        assert_eq!((offsets(&quick), offsets(&deep)), (vec![item], vec![item]));
        for within in [2, 20] {
            let [quick, deep] = found(&store.flipped(item + ITEM_HEADER_BYTES + within, 0));
            assert_eq!((offsets(&quick), offsets(&deep)), (vec![], vec![item]));
        }
    }
}

#[test]
fn damaged_position_is_found_by_both() {
    for end in [End::Closed, End::Killed] {
        let store = Aged::new(KEY_COUNT, end);
        let is_extent = |&(_, position): &(usize, usize)| store.word(position) >> 51 & 1 == 1;
        let entries = store.entries();
        let extents: Vec<_> = entries.iter().copied().filter(is_extent).collect();
        assert!(!extents.is_empty());
        for (_, position) in entries.into_iter().step_by(97).chain(extents) {
            for bit in [0, 5, 40, 53] {
                let [quick, deep] = found(&store.flipped(position, bit));
                assert!(!quick.is_empty() && !deep.is_empty(), "bit {bit} of {position:#x}");
            }
        }
    }
}

#[test]
fn both_checks_find_doubled_entries() {
    let store = Aged::new(KEY_COUNT, End::Closed);
    let entries = store.entries();
    let bytes = store.altered(|bytes| bytes.copy_within(entries[3].1..entries[3].1 + 8, entries[9].1));
    for damage in found(&bytes) {
        assert!(damage.iter().any(|damage| damage.what.starts_with("two entries name")), "{damage:?}");
    }
}

#[test]
fn damaged_copy_of_superblock_is_reported() {
    let store = Aged::new(KEY_COUNT, End::Killed);
    assert_eq!(found(&store.flipped(4_096 + 33, 0)).map(|damage| offsets(&damage)), [vec![4_096], vec![4_096]]);
}

#[test]
fn damaged_chain_word_is_found_by_both() {
    let store = Aged::new(KEY_COUNT, End::Killed);
    let next = store.segments(2)[0] + 16;
    assert_eq!(found(&store.flipped(next, 9)).map(|damage| offsets(&damage)), [vec![next], vec![next]]);
}

/// Returns the offset of the image's item.
fn image(store: &Aged) -> usize {
    (pmem::unseal(store.word(IMAGE_WORD)).unwrap() & 0xFF_FFFF) as usize * UNIT + EXTENT_ITEM
}

#[test]
fn deep_check_finds_incomplete_image() {
    let store = Aged::new(KEY_COUNT, End::Closed);
    for at in [0, 13, IMAGE_HEADER_BYTES + 8] {
        let [quick, deep] = found(&store.flipped(image(&store) + at, 0));
        assert_eq!((offsets(&quick), offsets(&deep)), (vec![], vec![image(&store)]));
    }
}

/// Returns the store with another free bit in the words of slabs, and matching checksums.
fn with_image_bit(store: &Aged, wanted: bool) -> Vec<u8> {
    let start = image(store);
    let chunks = store.chunks();
    let is_slab = |unit: usize| chunks.iter().any(|&(at, word)| at == unit * UNIT && word >> 32 == 2);
    let mut at = start + IMAGE_HEADER_BYTES;
    while !is_slab((store.word(at) & 0xFFFF_FFFF) as usize) {
        at += 8 * (1 + (store.word(at) >> 32) as usize);
    }
    let bit = (0..64).find(|bit| store.word(at + 8) >> bit & 1 == u64::from(wanted)).expect("the slab has such a slot");
    store.altered(|bytes| {
        bytes[at + 8 + bit / 8] ^= 1 << (bit % 8);
        let number = |at: usize| u32::from_le_bytes(bytes[start + at..start + at + 4].try_into().unwrap()) as usize;
        let space_bytes = 8 * (number(24) + 9 * number(20));
        let space = crc32c(0, &bytes[start + IMAGE_HEADER_BYTES..][..space_bytes]);
        bytes[start + 40..start + 44].copy_from_slice(&space.to_le_bytes());
        let header = crc32c(0, &bytes[start..start + 60]);
        bytes[start + 60..start + 64].copy_from_slice(&header.to_le_bytes());
    })
}

#[test]
fn deep_check_finds_wrong_image_bit() {
    let store = Aged::new(KEY_COUNT, End::Closed);
    let [quick, deep] = found(&with_image_bit(&store, false));
    for damage in [quick, deep] {
        assert!(damage.len() == 1 && damage[0].what.ends_with("whose place is free"), "{damage:?}");
    }
    let [quick, deep] = found(&with_image_bit(&store, true));
    assert!(quick.is_empty() && deep.len() == 1 && deep[0].what.contains("no entry names"), "{deep:?}");
}
