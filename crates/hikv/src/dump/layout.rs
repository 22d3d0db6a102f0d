//! The bytes of a dump. All integers are little endian.
//!
//! ```text
//! header, 64 bytes                        block header, 16 bytes
//! +0  magic, 8                            +0  length of the contents, u32
//! +8  version, u16                        +4  kind, u8; zero, 3
//! +10 zero, 2                             +8  number, u32: blocks before it
//! +12 flags, u32                          +12 checksum, u32: of bytes 0..12 and the contents
//! +16 uuid of the store, 16
//! +32 zero, 28                            end, 24 bytes
//! +60 checksum, u32: of bytes 0..60       +0  items, u64
//!                                         +8  bytes before this block, u64
//! record, in a block of records           +16 checksum of these bytes, u32
//! +0  kind, u8; flags, u8                 +20 zero, 4
//! +2  key length, u16
//! +4  value length, u32
//! +8  expiry, u64, if flagged; key; value, unless it follows in pieces
//! ```
//!
//! All checksums are CRC-32C.

use pmem::{Checksum, crc32c};

/// The first bytes of a dump: neither text nor a file name, and visibly damaged by a transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x89hkd\r\n\x1a\n";
/// The version that is written, and the newest that is read.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes before a block's contents.
pub const BLOCK_HEADER_BYTES: usize = 16;
/// Bytes before a record's expiry, or before its key if it has none.
pub const RECORD_HEADER_BYTES: usize = 8;
/// Bytes of the last block's contents.
pub const END_BYTES: usize = 24;
/// The longest contents of a block, in bytes: more than the longest record, and small enough to allocate before the
/// checksum is known to be right.
pub const BLOCK_BYTES_MAX: usize = 131_072;
/// Bytes up to which records are gathered in a block, and into which long values are cut.
pub const PIECE_BYTES: usize = 65_536;
/// The longest value that is stored in its record, in bytes. A longer one follows in pieces.
pub const WHOLE_VALUE_BYTES_MAX: usize = 32_768;

/// The dump's flag for keys in their stored form, of all trees of a store and of its catalog.
pub const DUMP_HAS_TREES: u32 = 1;

/// The only kind of record: a key and its value.
pub const RECORD_ITEM: u8 = 1;
/// The record's flag for an expiry, in milliseconds since the Unix epoch.
pub const FLAG_EXPIRY: u8 = 1;
/// The record's flag for a value that follows in separate blocks.
pub const FLAG_PIECES: u8 = 2;

const CHECKSUM_AT: usize = 60;
const BLOCK_CHECKSUM_AT: usize = 12;

/// The contents of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// Records, one after the other.
    Records = 1,
    /// A piece of the value of the preceding record.
    Piece = 2,
    /// The end of the dump.
    End = 3,
}

/// The header of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// The length of the contents in bytes.
    pub len_bytes: u32,
    /// The number of a [`BlockKind`].
    pub kind: u8,
    /// The number of preceding blocks.
    pub number: u32,
    /// The checksum of the other fields and the contents.
    pub checksum: u32,
}

/// The header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// Always [`RECORD_ITEM`].
    pub kind: u8,
    /// [`FLAG_EXPIRY`] and [`FLAG_PIECES`], if they apply.
    pub flags: u8,
    /// The key's length in bytes.
    pub key_bytes: u16,
    /// The value's length in bytes.
    pub value_bytes: u32,
}

/// The contents of the end block, which describe the preceding dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The number of items.
    pub item_count: u64,
    /// The number of preceding bytes, including the header.
    pub stream_bytes: u64,
    /// The CRC-32C of these bytes.
    pub checksum: u32,
}

/// Returns the header of a dump of the store `uuid`.
#[must_use]
pub fn header(uuid: [u8; 16], flags: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&flags.to_le_bytes());
    bytes[16..32].copy_from_slice(&uuid);
    let checksum = crc32c(0, &bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns true if the header's checksum matches.
pub(super) fn is_whole(header: &[u8; HEADER_BYTES]) -> bool {
    crc32c(0, &header[..CHECKSUM_AT]) == u32::from_le_bytes(field(header, CHECKSUM_AT))
}

impl BlockHeader {
    /// Returns the header of a block with `contents`.
    #[must_use]
    pub fn of(kind: BlockKind, number: u32, contents: &[u8]) -> BlockHeader {
        let header = BlockHeader { len_bytes: contents.len() as u32, kind: kind as u8, number, checksum: 0 };
        BlockHeader { checksum: header.checksum_of(contents), ..header }
    }

    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.len_bytes.to_le_bytes());
        bytes[4] = self.kind;
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[BLOCK_CHECKSUM_AT..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Decodes a header.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> BlockHeader {
        let number = |at| u32::from_le_bytes(field(bytes, at));
        BlockHeader { len_bytes: number(0), kind: bytes[4], number: number(8), checksum: number(BLOCK_CHECKSUM_AT) }
    }

    /// Returns the checksum of a block with these fields and `contents`.
    pub(super) fn checksum_of(self, contents: &[u8]) -> u32 {
        Checksum::default().update(&self.to_bytes()[..BLOCK_CHECKSUM_AT]).update(contents).value()
    }
}

impl RecordHeader {
    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [self.kind, self.flags, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.key_bytes.to_le_bytes());
        bytes[4..].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes
    }

    /// Decodes a header.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; RECORD_HEADER_BYTES]) -> RecordHeader {
        RecordHeader {
            kind: bytes[0],
            flags: bytes[1],
            key_bytes: u16::from_le_bytes(field(bytes, 2)),
            value_bytes: u32::from_le_bytes(field(bytes, 4)),
        }
    }
}

impl End {
    /// Encodes the end block's contents.
    #[must_use]
    pub fn to_bytes(self) -> [u8; END_BYTES] {
        let mut bytes = [0; END_BYTES];
        bytes[..8].copy_from_slice(&self.item_count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stream_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }
}

/// Returns the `N` bytes at `at`.
pub(super) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

const _: () = {
    assert!(CHECKSUM_AT + 4 == HEADER_BYTES && BLOCK_CHECKSUM_AT + 4 == BLOCK_HEADER_BYTES);
    assert!(RECORD_HEADER_BYTES + 8 + crate::Limits::KEY_BYTES_MAX + WHOLE_VALUE_BYTES_MAX <= BLOCK_BYTES_MAX);
    assert!(PIECE_BYTES <= BLOCK_BYTES_MAX && crate::Limits::VALUE_BYTES_MAX <= u32::MAX as u64);
};
