//! The superblock: its two copies, and the reasons to refuse a region.

use heap::layout::{
    ENGINE_AREA, FORMAT_MARK, FORMAT_UNFINISHED, GENERATION, HIGH_WATER_MARK, SUPERBLOCK_COPIES, UNIT_BYTES,
};
use heap::{BatchState, BatchWord, EngineNumber, Found, Heap, HeapError, Region};
use pmem::{Offset, crc32c, seal};

use crate::memory::{Host, Memory, PARAMETERS};

const CHECKED_BYTES: u64 = 72;
const SUPERBLOCK_BITS: u64 = (CHECKED_BYTES + 4) * 8;

fn open(memory: &Memory) -> Result<Heap<Host>, HeapError> {
    Heap::open(memory, EngineNumber::HIKV, Host::default())
}

fn open_error(memory: &Memory) -> HeapError {
    open(memory).err().expect("the region must be refused")
}

/// Changes bytes of both copies and updates their checksums.
fn forge(memory: &Memory, at: usize, field: &[u8]) {
    for copy in SUPERBLOCK_COPIES {
        let mut bytes = memory.bytes(copy.0, CHECKED_BYTES + 8);
        bytes[at..at + field.len()].copy_from_slice(field);
        let checksum = crc32c(0, &bytes[..CHECKED_BYTES as usize]);
        bytes[CHECKED_BYTES as usize..][..4].copy_from_slice(&checksum.to_le_bytes());
        memory.set_bytes(copy.0, &bytes);
    }
}

#[test]
fn formatted_region_opens_as_it_was_made() {
    let (memory, heap) = Memory::formatted();
    let superblock = heap.region().superblock();
    assert_eq!(superblock.uuid, PARAMETERS.uuid);
    assert_eq!((superblock.hash_seed, superblock.partition_count), (0x5EED, 16));
    assert_eq!(superblock.region_bytes, 4 << 20);
    heap.region().set_generation(&memory, 7);
    drop(heap);
    assert_eq!(Region::probe(&memory), Ok(Found::Formatted));
    let heap = open(&memory).unwrap();
    assert_eq!((heap.region().superblock(), heap.region().generation()), (superblock, 7));
    let again = Heap::format(&memory, EngineNumber::HIKV, &PARAMETERS, Host::default()).err();
    assert_eq!(again, Some(HeapError::AlreadyFormatted));
}

#[test]
fn unfinished_format_can_be_repeated() {
    let memory = Memory::new(0);
    assert_eq!(Region::probe(&memory), Ok(Found::Fresh));
    let heap = Heap::format(&memory, EngineNumber::HIKV, &PARAMETERS, Host::default()).unwrap();
    heap.reserve_segment(&memory).unwrap().publish();
    drop(heap);
    assert_eq!(memory.word_at(FORMAT_MARK.0), FORMAT_UNFINISHED);
    assert_eq!(Region::probe(&memory), Ok(Found::Fresh));
    assert_eq!(open_error(&memory), HeapError::Unformatted);
    let heap = Heap::format(&memory, EngineNumber::HIKV, &PARAMETERS, Host::default()).unwrap();
    heap.region().finish_format(&memory).unwrap();
    assert!(open(&memory).is_ok());
    assert_eq!(heap.stats().mark_bytes, UNIT_BYTES);
}

#[test]
fn format_over_abandoned_store_keeps_nothing() {
    let (memory, heap) = Memory::formatted();
    heap.region().set_generation(&memory, 7);
    heap.region().set_snapshot_epoch(&memory, 7);
    BatchWord { record: Offset(UNIT_BYTES), state: BatchState::Committed }.store(&memory, 3);
    memory.set_word(ENGINE_AREA.0, 7);
    // The first step of wiping a device.
    memory.set_word(FORMAT_MARK.0, FORMAT_UNFINISHED);
    let heap = Heap::format(&memory, EngineNumber::HIKV, &PARAMETERS, Host::default()).unwrap();
    heap.region().finish_format(&memory).unwrap();
    let (new, _heap) = Memory::formatted();
    assert_eq!(memory.bytes(0, UNIT_BYTES), new.bytes(0, UNIT_BYTES));
}

#[test]
fn bit_flip_in_one_copy_is_repaired() {
    let (memory, _heap) = Memory::formatted();
    let head = memory.bytes(0, UNIT_BYTES);
    for copy in SUPERBLOCK_COPIES {
        for bit in 0..SUPERBLOCK_BITS {
            memory.flip(copy.0 * 8 + bit);
            assert!(open(&memory).is_ok(), "copy at {}, bit {bit}", copy.0);
            assert_eq!(memory.bytes(0, UNIT_BYTES), head, "copy at {}, bit {bit}", copy.0);
        }
    }
}

#[test]
fn reader_uses_good_copy_without_repair() {
    let (memory, _heap) = Memory::formatted();
    memory.flip(300);
    let head = memory.bytes(0, UNIT_BYTES);
    memory.set_writable(false);
    let heap = open(&memory).unwrap();
    heap.sweep().finish(&memory);
    assert!(!heap.is_swept());
    assert!(matches!(heap.reserve(&memory, 100, 0).err(), Some(HeapError::Medium(pmem::MediumError::ReadOnly))));
    assert_eq!(memory.bytes(0, UNIT_BYTES), head);
}

#[test]
fn bit_flip_in_both_copies_is_refused() {
    let (memory, _heap) = Memory::formatted();
    let [a, b] = SUPERBLOCK_COPIES;
    for bit in 0..SUPERBLOCK_BITS {
        memory.flip(a.0 * 8 + bit);
        memory.flip(b.0 * 8 + bit);
        let error = open_error(&memory);
        match bit {
            0..64 => assert_eq!(error, HeapError::Foreign),
            // The lowest bit makes it an older version, which never existed.
            64 => assert!(matches!(error, HeapError::Damaged { .. }), "{error}"),
            65..80 => assert!(matches!(error, HeapError::Newer { .. }), "bit {bit}: {error}"),
            _ => assert!(matches!(error, HeapError::Damaged { .. }), "bit {bit}: {error}"),
        }
        memory.flip(a.0 * 8 + bit);
        memory.flip(b.0 * 8 + bit);
    }
}

#[test]
fn unreadable_versions_are_named() {
    let cases: [(usize, &[u8], HeapError); 6] = [
        (8, &2u16.to_le_bytes(), HeapError::Newer { found: 2, supported: 1 }),
        (52, &(1u32 << 31).to_le_bytes(), HeapError::UnknownFeatures { flags: 1 << 31 }),
        (40, &257u32.to_le_bytes(), HeapError::Damaged { offset: 40, what: "the partition count is out of range" }),
        (44, &1u32.to_le_bytes(), HeapError::Damaged { offset: 44, what: "the segment size is not supported" }),
        (48, &1u32.to_le_bytes(), HeapError::Damaged { offset: 48, what: "the unit size is not supported" }),
        (56, &1u64.to_le_bytes(), HeapError::Damaged { offset: 56, what: "the region's length is out of range" }),
    ];
    for (at, field, expected) in cases {
        let (memory, _heap) = Memory::formatted();
        forge(&memory, at, field);
        assert_eq!(open_error(&memory), expected);
        assert_eq!(Region::probe(&memory), Err(expected));
    }
}

#[test]
fn region_opens_only_with_its_engine() {
    let engines = || EngineNumber::NAMED.iter().map(|&(number, _)| number);
    for found in engines() {
        let memory = Memory::new(0);
        let heap = Heap::format(&memory, found, &PARAMETERS, Host::default()).unwrap();
        heap.region().finish_format(&memory).unwrap();
        assert_eq!(Region::engine(&memory), Ok(found));
        for wanted in engines() {
            match Heap::open(&memory, wanted, Host::default()).err() {
                None => assert_eq!(found, wanted),
                Some(error) => {
                    assert_eq!(error, HeapError::WrongEngine { found, wanted });
                    let (found, wanted) = (found.name().unwrap(), wanted.name().unwrap());
                    assert_eq!(error.to_string(), format!("the store belongs to engine {found}, not to {wanted}"));
                }
            }
        }
    }
}

#[test]
fn unknown_engine_keeps_its_number() {
    let (memory, _heap) = Memory::formatted();
    forge(&memory, 12, &77u32.to_le_bytes());
    assert_eq!(Region::engine(&memory), Ok(EngineNumber(77)));
    assert_eq!(open_error(&memory).to_string(), "the store belongs to engine number 77, not to hikv");
}

#[test]
fn newer_minor_version_is_read() {
    let (memory, _heap) = Memory::formatted();
    forge(&memory, 10, &9u16.to_le_bytes());
    assert_eq!(open(&memory).unwrap().region().superblock().format_minor, 9);
}

#[test]
fn newer_valid_copy_wins() {
    for newer in 0..2 {
        let (memory, heap) = Memory::formatted();
        let older = memory.bytes(0, CHECKED_BYTES + 8);
        heap.prepare(&memory, 16 << 20);
        let region_bytes = heap.region().superblock().region_bytes;
        drop(heap);
        memory.set_bytes(SUPERBLOCK_COPIES[1 - newer].0, &older);
        assert_eq!(open(&memory).unwrap().region().superblock().region_bytes, region_bytes);
        let [a, b] = SUPERBLOCK_COPIES.map(|copy| memory.bytes(copy.0, CHECKED_BYTES + 8));
        assert_eq!(a, b);
    }
}

#[test]
fn foreign_and_truncated_media_are_distinguished() {
    let foreign = Memory::new(1 << 20);
    foreign.set_word(0, 1);
    assert_eq!(open_error(&foreign), HeapError::Foreign);
    let (memory, _heap) = Memory::formatted();
    for file_bytes in [128, 4_096, 9_000, 65_536, (4 << 20) - 8] {
        memory.truncate(file_bytes);
        assert_eq!(open_error(&memory), HeapError::Truncated { region_bytes: 4 << 20, file_bytes });
    }
}

#[test]
fn state_word_bit_flips_are_refused() {
    let (memory, _heap) = Memory::formatted();
    for at in [FORMAT_MARK, HIGH_WATER_MARK, GENERATION] {
        for bit in 0..64 {
            memory.flip(at.0 * 8 + bit);
            assert!(matches!(open_error(&memory), HeapError::Damaged { offset, .. } if offset == at.0));
            memory.flip(at.0 * 8 + bit);
        }
    }
    for (at, payload) in [(HIGH_WATER_MARK, 0), (HIGH_WATER_MARK, 65), (GENERATION, 65_536)] {
        let word = memory.word_at(at.0);
        memory.set_word(at.0, seal(payload));
        assert!(matches!(open_error(&memory), HeapError::Damaged { offset, .. } if offset == at.0));
        memory.set_word(at.0, word);
    }
}

#[test]
fn parameters_outside_their_range_are_refused() {
    for partition_count in [0, 257] {
        let parameters = heap::Parameters { partition_count, ..PARAMETERS };
        let error = Heap::format(&Memory::new(0), EngineNumber::HIKV, &parameters, Host::default()).err();
        let value = partition_count.into();
        assert_eq!(error, Some(HeapError::Parameter { what: "the partition count", value }));
    }
}
