//! The layout of a region.
//!
//! ```text
//! engine area, lines of 64 bytes
//!   0..64    lane words: offset of the lane's newest segment, sealed; 0 sealed if it has none
//!   64       root: the number of the current checkpoint, sealed
//!   65       opening: how often the store was opened for writing, sealed
//!   128..    checkpoint record of even numbers
//!   160..    checkpoint record of odd numbers
//!
//! segment    an extent: its header, then 1,022 entries, a line each
//!   +0  lane, u64          +8  opening, u64      +16 sequence of the first entry, u64
//!   +24 previous segment, u64: 0 for none        +32 zero       +60 CRC-32C of the bytes before it
//!
//! entry
//!   +0  record that begins, a position word; 0 for none
//!   +8  record that ends, a position word; 0 for none
//!   +16 sequence, 48 bits; kind, 8 bits: 0 void, 1 put, 2 delete, 3 end of a batch
//!   +24 sequence up to which the lane was durable before
//!   +32 checksum of the record that begins, u32; zero
//!   +40 batch: 0, or its number
//!   +48 hash of the key; in the end of a batch, its number of entries
//!   +56 zero               +60 CRC-32C of the segment's header and of the bytes before it
//!
//! node       a slot of 4 KiB: 16 bytes of header, then 136 keys of 30
//!   +0  previous node, u64: 0 for none           +8  count, u32
//!   +12 CRC-32C of the checkpoint's number, 0..12 and the keys
//!   key: +0 record, a position word   +8 checksum of the record, u32   +12 lane, u8
//!        +13 length, u8: 255 for a key that is only in its record      +14 the key, at most 16 bytes
//!   in stores of format 1.1, 255 keys of 16: +12 lane, u32
//!
//! checkpoint record
//!   +0  number, u64        +8  last node, u64: 0 for none            +16 nodes, u64
//!   +24 keys, u64          +32 zero           +60 CRC-32C of the bytes before it and of the cuts
//!   +64 cuts: for each of 64 lanes the sequence up to which its entries are in the nodes, u64
//! ```
//!
//! A *position word* is an `index::Position`: 48 bits of offset, and the kind of the place.

pub(crate) use heap::layout::UNIT_BYTES;
use heap::layout::{ENGINE_AREA, ENGINE_AREA_BYTES};
use heap::{Class, Place, PlaceKind};
use pmem::{LINE_BYTES, Offset};

/// The maximum number of lanes: each has a line in the engine area, and a cut in each checkpoint.
pub const LANE_COUNT_MAX: usize = 64;
/// The number of the current checkpoint, sealed.
pub const ROOT: Offset = ENGINE_AREA.plus(64 * LINE_BYTES);
/// The number of times the store was opened for writing, sealed.
pub const OPENING: Offset = ENGINE_AREA.plus(65 * LINE_BYTES);
/// The checkpoint records, by the lowest bit of their number.
pub const RECORDS: [Offset; 2] = [ENGINE_AREA.plus(128 * LINE_BYTES), ENGINE_AREA.plus(160 * LINE_BYTES)];

/// The bytes of a segment with its header: the capacity of an extent of one unit.
pub const SEGMENT_BYTES: u64 = UNIT_BYTES - LINE_BYTES;
/// The bytes of an entry: one line.
pub const ENTRY_BYTES: usize = LINE_BYTES as usize;
/// The number of entries in a segment.
pub const SEGMENT_ENTRY_COUNT: u64 = SEGMENT_BYTES / LINE_BYTES - 1;
/// The bits of a sequence.
pub const SEQUENCE_BITS: u32 = 48;

/// The bytes of a checkpoint's node.
pub const NODE_BYTES: u64 = 4_096;
/// The bytes of a node's header.
pub const NODE_HEADER_BYTES: usize = 16;
/// The bytes of a key in a node, with its record's place.
pub const NODE_KEY_BYTES: usize = 30;
/// The same in stores of format 1.1, whose nodes have no keys.
pub const NODE_RECORD_BYTES: usize = 16;
/// The maximum length of keys that are stored in the nodes as well.
pub const SHORT_KEY_BYTES_MAX: usize = 16;

/// The bytes of a checkpoint record's header.
pub const RECORD_HEADER_BYTES: usize = LINE_BYTES as usize;
/// The bytes of a checkpoint record.
pub const RECORD_BYTES: usize = RECORD_HEADER_BYTES + LANE_COUNT_MAX * 8;

/// Returns the offset of a lane's word.
#[must_use]
pub const fn lane_word(lane: usize) -> Offset {
    ENGINE_AREA.plus(lane as u64 * LINE_BYTES)
}

/// Returns the offset of the record of the checkpoint with this number.
#[must_use]
pub const fn record(number: u64) -> Offset {
    RECORDS[(number & 1) as usize]
}

/// The size class of nodes.
pub(crate) const NODE_CLASS: Class = Class::for_bytes(NODE_BYTES).expect("a node fits a class");

/// Returns the place of the node at `at`.
pub(crate) fn node_place(at: Offset) -> Place {
    Place { offset: at, kind: PlaceKind::Slot(NODE_CLASS) }
}

/// Returns the place of the segment at `at`.
pub(crate) fn segment_place(at: Offset) -> Place {
    Place { offset: at, kind: PlaceKind::Extent }
}

const _: () = {
    assert!(lane_word(LANE_COUNT_MAX).0 == ROOT.0 && ROOT.0 + LINE_BYTES == OPENING.0);
    assert!(OPENING.0 < RECORDS[0].0 && RECORDS[0].0 + RECORD_BYTES as u64 <= RECORDS[1].0);
    assert!(RECORDS[1].0 + RECORD_BYTES as u64 <= ENGINE_AREA.0 + ENGINE_AREA_BYTES);
    assert!(SEGMENT_ENTRY_COUNT == 1_022);
    // A node stores a lane in one byte.
    assert!(LANE_COUNT_MAX <= 256);
};
