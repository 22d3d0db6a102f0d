//! Repairs recover every undamaged item, and no replaced or deleted one.

use hikv::OpenError;
use hikv::repair::{RepairError, Weight};
use testkit::Extent;

use crate::bad_files::aged::{Aged, EXTENT_ITEM, End, IMAGE_WORD, ITEM_HEADER_BYTES, SEGMENT, Salvaged, UNIT, key};

const ENDS: [End; 2] = [End::Closed, End::Killed];
/// Enough items to split segments and leave old ones.
const MANY: usize = 2_500;
const FEW: usize = 600;
/// Rounds of random damage to each store.
const ROUND_COUNT: usize = 100;
const COPIES: [usize; 2] = [0, 4_096];
const DEAD: u64 = 4;
const LIVE: u64 = 2;

#[test]
fn intact_store_is_copied_without_findings() {
    for end in ENDS {
        let store = Aged::new(MANY, end);
        assert!(store.segments(LIVE).len() > 2 && !store.segments(DEAD).is_empty(), "segments were split");
        assert_eq!(store.assert_salvaged(&store.bytes, &[]).findings, []);
    }
}

#[test]
fn damaged_superblocks_are_mended_from_each_other() {
    let store = Aged::new(FEW, End::Killed);
    for at in [0, 8, 33, 40, 57, 73] {
        for copy in COPIES {
            let salvaged = store.assert_salvaged(&store.flipped(copy + at, 3), &[]);
            assert_eq!((salvaged.report.mended_count, salvaged.report.doubtful_count), (1, 0), "{salvaged:?}");
        }
        // Both copies: the same bit, and entirely different bytes.
        let same = store.altered(|bytes| COPIES.iter().for_each(|copy| bytes[copy + at] ^= 16));
        let others = store.altered(|bytes| {
            bytes[at..at + 3].fill(0xA5);
            bytes[COPIES[1] + 76 - at - 3..][..3].fill(0x5A);
        });
        for both in [same, others] {
            let salvaged = store.assert_salvaged(&both, &[]);
            assert_eq!((salvaged.report.mended_count, salvaged.report.doubtful_count), (2, 0), "{salvaged:?}");
        }
    }
}

#[test]
fn lost_superblock_repair_uses_checksums() {
    for end in ENDS {
        let store = Aged::new(MANY, end);
        let zeroed = store.altered(|bytes| COPIES.iter().for_each(|copy| bytes[*copy..copy + 128].fill(0)));
        let salvaged = store.assert_salvaged(&zeroed, &[]);
        assert!(salvaged.findings.iter().any(|found| found.weight == Weight::Doubtful && found.what.contains("seed")));
    }
}

#[test]
fn damaged_words_of_the_head_cost_nothing() {
    for end in ENDS {
        let store = Aged::new(MANY, end);
        for at in [8_192, 8_256, 8_320, IMAGE_WORD, 16_384 + 24] {
            for bit in [0, 9, 33, 50] {
                let salvaged = store.assert_salvaged(&store.flipped(at, bit), &[]);
                let reported = end == End::Closed || at != IMAGE_WORD;
                assert!(!reported || salvaged.report.mended_count > 0, "{at:#x}, bit {bit}");
            }
        }
        let head = store.altered(|bytes| bytes[..UNIT].fill(0));
        store.assert_salvaged(&head, &[]);
    }
}

#[test]
fn damaged_image_costs_nothing() {
    let store = Aged::new(FEW, End::Closed);
    let image = (pmem::unseal(store.word(IMAGE_WORD)).unwrap() & 0xFF_FFFF) as usize * UNIT + EXTENT_ITEM;
    for at in [0, 12, 60, 64, 200] {
        store.assert_salvaged(&store.flipped(image + at, 2), &[]);
    }
}

#[test]
fn damaged_chunk_header_costs_nothing() {
    for end in ENDS {
        let store = Aged::new(MANY, end);
        let chunks = store.chunks();
        assert!(chunks.len() > 4);
        for (at, _) in chunks {
            for bit in [1, 34, 60] {
                let salvaged = store.assert_salvaged(&store.flipped(at, bit), &[]);
                assert!(salvaged.findings.iter().any(|found| found.offset == at as u64), "{salvaged:?}");
            }
        }
        let all = store.altered(|bytes| store.chunks().iter().for_each(|(at, _)| bytes[*at..at + 8].fill(0)));
        store.assert_salvaged(&all, &[]);
    }
}

#[test]
fn damaged_segment_header_costs_nothing() {
    for end in ENDS {
        let store = Aged::new(MANY, end);
        for segment in store.segments(LIVE).into_iter().chain(store.segments(DEAD)) {
            for (at, bit) in [(0, 0), (0, 20), (8, 0)] {
                store.assert_salvaged(&store.flipped(segment + at, bit), &[]);
            }
            for (len, byte) in [(8, 0), (64, 0), (64, 0xFF)] {
                store.assert_salvaged(&store.altered(|bytes| bytes[segment..segment + len].fill(byte)), &[]);
            }
        }
    }
}

#[test]
fn segments_are_found_by_their_entries() {
    for end in ENDS {
        let store = Aged::new(MANY, end);
        let (chunk, _) = *store.chunks().iter().find(|(_, word)| word >> 32 == 3).unwrap();
        for segment in store.segments(LIVE) {
            let both = store.altered(|bytes| {
                bytes[chunk] ^= 1;
                bytes[segment + 1] ^= 1;
            });
            store.assert_salvaged(&both, &[]);
        }
    }
}

#[test]
fn damaged_signature_is_fixed() {
    for end in ENDS {
        let store = Aged::new(FEW, end);
        for (signature, _) in store.entries().into_iter().step_by(37) {
            for byte in [0, 3, 7] {
                let salvaged = store.assert_salvaged(&store.altered(|bytes| bytes[signature + byte] ^= 0x5A), &[]);
                assert_eq!(salvaged.report.mended_count, 1);
            }
        }
    }
}

#[test]
fn damaged_position_is_recovered_from_image() {
    for end in ENDS {
        let store = Aged::new(FEW, end);
        let mut older_count = 0;
        for (_, position) in store.entries().into_iter().step_by(97) {
            for bit in (0..64).step_by(3) {
                let salvaged = Salvaged::from(&store.flipped(position, bit)).unwrap();
                // Without an image, a position that leads to an older value of the same key looks correct.
                if end == End::Killed && store.false_count(&salvaged) == 1 {
                    older_count += 1;
                    continue;
                }
                store.assert_true(&salvaged);
                let missing_count = store.items.len() - salvaged.items.len();
                // A bit that marks a deletion looks correct, and class and marks are not needed.
                let is_reported = bit < 48;
                assert_eq!(salvaged.report.lost_count as usize, if is_reported { missing_count } else { 0 });
                assert!(missing_count <= usize::from(end == End::Killed), "bit {bit}: {salvaged:?}");
            }
        }
        assert!(older_count <= 3, "{older_count} flips led to an older value of the same key");
    }
}

#[test]
fn damaged_item_is_lost_and_no_other() {
    for end in ENDS {
        let store = Aged::new(FEW, end);
        let places = store.places();
        for i in [1, 251, 499, 598] {
            let at = places[&key(i)];
            for bit in [0, 35, 50, 70, 100] {
                store.assert_salvaged(&store.flipped(at, bit), &[key(i)]);
            }
            let key_damaged = store.assert_salvaged(&store.flipped(at + ITEM_HEADER_BYTES + 4, 1), &[key(i)]);
            assert!(key_damaged.findings[0].key.is_none() && key_damaged.findings[0].what.contains("signature"));
            let value_damaged = store.assert_salvaged(&store.flipped(at + ITEM_HEADER_BYTES + 25, 1), &[key(i)]);
            assert_eq!(value_damaged.findings[0].key, Some(key(i)));
        }
    }
}

#[test]
fn truncated_file_yields_its_rest() {
    for end in ENDS {
        let store = Aged::new(FEW, end);
        let segments_end = store.segments(LIVE).into_iter().max().unwrap() + SEGMENT;
        let places = store.places();
        for len in (segments_end..store.bytes.len()).step_by(150_001).chain([store.bytes.len() - 1]) {
            let salvaged = Salvaged::from(&store.bytes[..len]).unwrap();
            store.assert_true(&salvaged);
            // A tail shorter than a page is dropped.
            let left = len - len % 4_096;
            let is_left = |key: &Vec<u8>| places[key] + ITEM_HEADER_BYTES + key.len() + store.items[key].len() <= left;
            let left_count = store.items.keys().filter(|key| is_left(key)).count();
            assert_eq!(salvaged.items.len(), left_count, "cut to {len} bytes");
            assert_eq!(salvaged.report.lost_count as usize, store.items.len() - left_count, "cut to {len} bytes");
        }
    }
}

#[test]
fn file_without_segments_makes_no_store() {
    let store = Aged::new(FEW, End::Closed);
    for len in [4_096, 8_192, UNIT, UNIT + SEGMENT] {
        let error = Salvaged::from(&store.bytes[..len]).unwrap_err();
        assert!(matches!(error, RepairError::From(OpenError::Unusable { .. })), "{error}");
        assert!(error.to_string().contains("nothing can be salvaged"), "{error}");
    }
    assert!(matches!(Salvaged::from(&store.bytes[..100]).unwrap_err(), RepairError::From(OpenError::Map(_))));
    assert!(Salvaged::from(&b"no store at all. ".repeat(100_000)).is_err());
}

#[test]
fn longer_file_is_no_damage() {
    let store = Aged::new(FEW, End::Killed);
    let longer = store.altered(|bytes| bytes.extend([0xEE; 100_000]));
    assert_eq!(store.assert_salvaged(&longer, &[]).findings, []);
}

#[test]
fn newer_format_is_no_damage_and_refused() {
    let store = Aged::new(FEW, End::Killed);
    let newer = store.altered(|bytes| COPIES.iter().for_each(|copy| bytes[copy + 8] = 7));
    assert!(Salvaged::from(&newer).unwrap_err().to_string().contains("format 7"));
}

/// Flips bits all over the used part of the region.
#[test]
fn salvaged_items_are_true_despite_bit_flips() {
    for end in ENDS {
        let store = Aged::new(FEW, end);
        let mut random = fastrand::Rng::with_seed(7);
        let segments = store.segments(LIVE);
        let (mut item_count, mut lost_count, mut refused_count, mut old_value_count) = (0, 0, 0, 0);
        let round_count = ROUND_COUNT / Extent::pick(4, 1);
        for round in 0..round_count {
            let bytes = store.altered(|bytes| {
                for _ in 0..random.usize(1..40) {
                    // Every second bit is in a critical place.
                    let at = match random.u8(..4) {
                        0 => segments[random.usize(..segments.len())] + random.usize(..SEGMENT),
                        1 => random.usize(..UNIT / 2),
                        _ => random.usize(..bytes.len()),
                    };
                    bytes[at] ^= 1 << random.u8(..8);
                }
            });
            match Salvaged::from(&bytes) {
                Ok(salvaged) => {
                    old_value_count += store.old_value_count(&salvaged);
                    item_count += salvaged.items.len();
                    lost_count += salvaged.report.lost_count;
                }
                Err(RepairError::From(OpenError::Unusable { .. })) => refused_count += 1,
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        // Rarely, a flip changes a position so that it leads to an older item of the same key, which nothing reveals.
        assert!(old_value_count <= 1, "{old_value_count} old values");
        assert!(lost_count > 0 && refused_count < 5, "{lost_count} lost, {refused_count} refused");
        assert!(item_count > round_count / 25 * 24 * store.items.len(), "{item_count} items");
    }
}

/// Nothing reveals which of two intact items is newer, so the choice is reported for each key.
#[test]
fn zeroed_page_of_index_is_reported() {
    const PAGE: usize = 4_096;
    let store = Aged::new(MANY, End::Killed);
    let pages = store.segments(LIVE).into_iter().flat_map(|at| (at..at + SEGMENT).step_by(PAGE));
    let mut taken_count = 0;
    for page in pages {
        let salvaged = Salvaged::from(&store.altered(|bytes| bytes[page..page + PAGE].fill(0))).unwrap();
        let is_reported = |key: &Vec<u8>| salvaged.findings.iter().any(|found| found.key.as_ref() == Some(key));
        for (key, value) in &store.items {
            let found = salvaged.items.get(key).unwrap_or_else(|| panic!("{page:#x}: {key:?} is lost"));
            assert!(found == value || is_reported(key), "{page:#x}: an older value of {key:?} is taken, unsaid");
        }
        assert!(salvaged.items.keys().all(|key| store.items.contains_key(key) || is_reported(key)), "{page:#x}");
        assert!(salvaged.report.doubtful_count > 0, "{page:#x}: entries went with the page");
        taken_count += salvaged.report.doubtful_count;
    }
    assert!(taken_count > 100, "{taken_count} show little");
}

/// A misdirected write puts a page of the index in another page's place. Items of the lost page are recovered and
/// reported; items of the other page are recovered through its own place.
#[test]
fn misplaced_index_page_is_reported() {
    const PAGE: usize = 4_096;
    let store = Aged::new(MANY, End::Killed);
    // The header of a segment is in its first page; a header at another page reveals the misdirected write.
    let pages: Vec<_> =
        store.segments(LIVE).into_iter().flat_map(|at| (at + PAGE..at + SEGMENT).step_by(PAGE)).collect();
    for (&to, &from) in pages.iter().zip(pages.iter().cycle().skip(2)) {
        let salvaged = Salvaged::from(&store.altered(|bytes| bytes.copy_within(from..from + PAGE, to))).unwrap();
        let is_reported = |key: &Vec<u8>| salvaged.findings.iter().any(|found| found.key.as_ref() == Some(key));
        for (key, value) in &store.items {
            let found = salvaged.items.get(key).unwrap_or_else(|| panic!("{from:#x} at {to:#x}: {key:?} is lost"));
            assert!(
                found == value || is_reported(key),
                "{from:#x} at {to:#x}: an older value of {key:?} is taken, unsaid"
            );
        }
        assert!(
            salvaged.items.keys().all(|key| store.items.contains_key(key) || is_reported(key)),
            "{from:#x} at {to:#x}"
        );
        assert!(salvaged.report.doubtful_count > 0, "{from:#x} at {to:#x}: entries went with the page");
    }
}
