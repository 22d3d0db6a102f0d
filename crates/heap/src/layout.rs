//! The layout of a region. The contents of slots belong to the hash index and the engine.
//!
//! All integers are little endian. A region consists of units of 64 KiB: unit 0 is the head, chunks fill the others.
//!
//! ```text
//! unit 0: the head
//!        0 ┌──────────────────────────────────────────┐
//!          │ superblock, copy A   (see superblock.rs) │
//!     4096 ├──────────────────────────────────────────┤
//!          │ superblock, copy B                       │
//!     8192 ├──────────────────────────────────────────┤
//!          │ format mark      8   then zero to 64     │  one word a line, so that
//!     8256 │ high-water mark  8   then zero to 64     │  each becomes durable
//!     8320 │ generation       8   then zero to 64     │  independently
//!     8384 │ image            8   then zero to 64     │
//!     8448 │ snapshot epoch   8   then zero to 64     │
//!     8512 │ 16 batch words   8   then zero to 64     │
//!     9536 │ made for         8   then zero to 64     │
//!     9600 │ zero: reserved                           │
//!    12288 ├──────────────────────────────────────────┤
//!          │ zero                                     │
//!    16384 ├──────────────────────────────────────────┤
//!          │ the engine area: 256 lines of 64 bytes   │  contents: the engine's
//!    32768 ├──────────────────────────────────────────┤
//!          │ zero                                     │
//!    65536 └──────────────────────────────────────────┘
//! unit 1 and on: chunks, end to end, up to the high-water mark
//!        0 ┌──────────────────────────────────────────┐
//!          │ header word      8   then unused to 64   │
//!       64 ├──────────────────────────────────────────┤
//!          │ Slab:     slots of the class's size      │
//!          │ Extent:   one item                       │
//!          │ Free:     nothing                        │
//!          │ Segments: unused up to 16384, then       │
//!          │           63 slots of 16384              │
//!          └──────────────────────────────────────────┘
//! header word, sealed (pmem::seal)
//!   63            48 47      36 35    32 31      24 23            0
//!   ┌───────────────┬──────────┬────────┬──────────┬──────────────┐
//!   │ check         │ zero     │ kind   │ class    │ units        │
//!   └───────────────┴──────────┴────────┴──────────┴──────────────┘
//! ```
//!
//! The high-water mark is a sealed count of units. The generation is a sealed number of 16 bits. The image word is 0
//! in a new region; later the word holds, sealed, the first unit of the clean image's extent (24 bits, 0 for none)
//! and above that the number of the last image (24 bits): see image.rs. The snapshot epoch is 0, or a sealed number
//! of 32 bits. The level of durability that the region was made for is 0 or a sealed level. A batch word is 0, or
//! holds, sealed, the place of a batch's record and the batch's state: see batch_word.rs.

use pmem::{LINE_BYTES, Offset};

/// The size of a unit, in which regions and chunks are counted.
pub const UNIT_BYTES: u64 = 65_536;
/// The most units of a region: chunk lengths have 24 bits, so a region has at most 1 TiB.
pub const REGION_UNITS_MAX: u64 = 1 << 24;
/// The largest region.
pub const REGION_BYTES_MAX: u64 = REGION_UNITS_MAX * UNIT_BYTES;

/// The two copies of the superblock.
pub const SUPERBLOCK_COPIES: [Offset; 2] = [Offset(0), Offset(4_096)];
/// `FORMAT_UNFINISHED` while a region is being formatted, 0 afterwards.
pub const FORMAT_MARK: Offset = Offset(8_192);
/// The sealed count of units, the head included, that hold chunks.
pub const HIGH_WATER_MARK: Offset = Offset(8_256);
/// The sealed generation of the store; clearing the store changes it.
pub const GENERATION: Offset = Offset(8_320);
/// 0, or the sealed place and number of the clean image.
pub const IMAGE: Offset = Offset(8_384);
/// 0, or the sealed snapshot epoch, which new items are stamped with.
pub const SNAPSHOT_EPOCH: Offset = Offset(8_448);
/// The first batch word.
pub const BATCH_WORDS: Offset = Offset(8_512);
/// The number of batch words, one a line: the most batches in progress at the same time. This is about the number of
/// cores that write; a thread is in the middle of at most one batch.
pub const BATCH_WORD_COUNT: usize = 16;
/// 0, or the sealed durability of the medium that the region was made on: 1 `process`, 2 `buffered`, 3 `power`.
pub const MADE_FOR: Offset = Offset(9_536);
/// The format mark of a region whose format has not finished: the bytes `hikv new`.
pub const FORMAT_UNFINISHED: u64 = u64::from_le_bytes(*b"hikv new");

/// The engine area: lines whose contents the region's engine defines. They are zero in a new region.
pub const ENGINE_AREA: Offset = Offset(16_384);
/// The length of the engine area: one line for each parallel unit, if an engine wants that.
pub const ENGINE_AREA_BYTES: u64 = PARTITION_COUNT_MAX as u64 * LINE_BYTES;
/// The most parallel units that a region can have.
pub const PARTITION_COUNT_MAX: u32 = 256;

/// The first unit that holds a chunk.
pub const FIRST_CHUNK_UNIT: u32 = 1;
/// A chunk's header: a line, of which only the first word is used.
pub const CHUNK_HEADER_BYTES: u64 = LINE_BYTES;
/// The size of a segment of the hash index. Splitting one must fit a tail latency of 20 us.
pub const SEGMENT_BYTES: u64 = 16_384;
/// The length of a chunk of segments: 1 MiB, of which the header uses one part in 64.
pub const SEGMENTS_CHUNK_UNITS: u32 = 16;
/// The number of slots in a chunk of segments: the header occupies the place of one slot.
pub const SEGMENTS_CHUNK_SLOTS: u32 = 63;

/// Returns the offset of batch word `number`.
#[must_use]
pub const fn batch_word(number: usize) -> Offset {
    BATCH_WORDS.plus(number as u64 * LINE_BYTES)
}

/// Returns the start of a unit.
#[must_use]
pub const fn unit_start(unit: u32) -> Offset {
    Offset(unit as u64 * UNIT_BYTES)
}

/// Returns the unit that holds a byte, or `None` beyond the largest region.
#[must_use]
pub const fn unit_of(offset: Offset) -> Option<u32> {
    let unit = offset.0 / UNIT_BYTES;
    if unit < REGION_UNITS_MAX { Some(unit as u32) } else { None }
}

const _: () = {
    assert!(SUPERBLOCK_COPIES[0].0 + 4_096 == SUPERBLOCK_COPIES[1].0);
    assert!(SUPERBLOCK_COPIES[1].0 + 4_096 == FORMAT_MARK.0);
    assert!(FORMAT_MARK.0 + LINE_BYTES == HIGH_WATER_MARK.0);
    assert!(HIGH_WATER_MARK.0 + LINE_BYTES == GENERATION.0);
    assert!(GENERATION.0 + LINE_BYTES == IMAGE.0);
    assert!(IMAGE.0 + LINE_BYTES == SNAPSHOT_EPOCH.0);
    assert!(SNAPSHOT_EPOCH.0 + LINE_BYTES == BATCH_WORDS.0);
    assert!(batch_word(BATCH_WORD_COUNT).0 == MADE_FOR.0);
    assert!(MADE_FOR.0 + LINE_BYTES <= ENGINE_AREA.0);
    assert!(ENGINE_AREA.0 + ENGINE_AREA_BYTES <= UNIT_BYTES);
    assert!((SEGMENTS_CHUNK_SLOTS as u64 + 1) * SEGMENT_BYTES == SEGMENTS_CHUNK_UNITS as u64 * UNIT_BYTES);
};
