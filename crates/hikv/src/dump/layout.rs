//! The bytes of a dump. All integers are little endian.
//!
//! ```text
//! header, 64 bytes                        block header, 16 bytes
//! +0  magic, 8                            +0  length of what follows, u32
//! +8  version, u16                        +4  kind, u8; zero, 3
//! +10 zero, 2                             +8  number, u32: blocks before it
//! +12 flags, u32                          +12 checksum, u32: of bytes 0..12 and what follows
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

/// The first bytes of a dump: neither text nor a name, and damaged visibly by a transfer as text.
pub const MAGIC: [u8; 8] = *b"\x89hkd\r\n\x1a\n";
/// The version that is written; no newer one is read.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes before a block's contents.
pub const BLOCK_HEADER_BYTES: usize = 16;
/// Bytes before a record's expiry, or key.
pub const RECORD_HEADER_BYTES: usize = 8;
/// The contents of the last block.
pub const END_BYTES: usize = 24;
/// A block's contents at the most: more than the longest record, and little enough to be held in memory unseen.
pub const BLOCK_BYTES_MAX: usize = 131_072;
/// Records are gathered up to this many bytes, and values are cut into pieces of it.
pub const PIECE_BYTES: usize = 65_536;
/// A longer value follows its record in pieces.
pub const WHOLE_VALUE_BYTES_MAX: usize = 32_768;

/// The only kind of record: a key and its value.
pub const RECORD_ITEM: u8 = 1;
/// The record's flag for an expiry, in milliseconds since the Unix epoch.
pub const FLAG_EXPIRY: u8 = 1;
/// The record's flag for a value that follows in blocks of its own.
pub const FLAG_PIECES: u8 = 2;

const CHECKSUM_AT: usize = 60;
const BLOCK_CHECKSUM_AT: usize = 12;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// Records, one behind the other.
    Records = 1,
    /// A piece of the value of the last record before it.
    Piece = 2,
    /// The end.
    End = 3,
}

/// A block's first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// Bytes of what follows.
    pub len_bytes: u32,
    /// The number of [`BlockKind`].
    pub kind: u8,
    /// Blocks before this one.
    pub number: u32,
    /// Over the fields before it and what follows.
    pub checksum: u32,
}

/// A record's first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// [`RECORD_ITEM`].
    pub kind: u8,
    /// [`FLAG_EXPIRY`], [`FLAG_PIECES`].
    pub flags: u8,
    /// The key's length.
    pub key_bytes: u16,
    /// The value's length.
    pub value_bytes: u32,
}

/// What the end says of everything before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Items.
    pub item_count: u64,
    /// Bytes, the header's among them.
    pub stream_bytes: u64,
    /// CRC-32C of these bytes.
    pub checksum: u32,
}

/// The header of a dump of the store `uuid`.
#[must_use]
pub fn header(uuid: [u8; 16]) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..32].copy_from_slice(&uuid);
    let checksum = crc32c(0, &bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// True if the header's checksum fits.
pub(super) fn is_whole(header: &[u8; HEADER_BYTES]) -> bool {
    crc32c(0, &header[..CHECKSUM_AT]) == u32::from_le_bytes(field(header, CHECKSUM_AT))
}

impl BlockHeader {
    /// The header of a block of `contents`.
    #[must_use]
    pub fn of(kind: BlockKind, number: u32, contents: &[u8]) -> BlockHeader {
        let header = BlockHeader { len_bytes: contents.len() as u32, kind: kind as u8, number, checksum: 0 };
        BlockHeader { checksum: header.checksum_of(contents), ..header }
    }

    /// As written.
    #[must_use]
    pub fn to_bytes(self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.len_bytes.to_le_bytes());
        bytes[4] = self.kind;
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[BLOCK_CHECKSUM_AT..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// From what was written.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> BlockHeader {
        let number = |at| u32::from_le_bytes(field(bytes, at));
        BlockHeader { len_bytes: number(0), kind: bytes[4], number: number(8), checksum: number(BLOCK_CHECKSUM_AT) }
    }

    /// The checksum that a block of `contents` with these fields has.
    pub(super) fn checksum_of(self, contents: &[u8]) -> u32 {
        Checksum::default().update(&self.to_bytes()[..BLOCK_CHECKSUM_AT]).update(contents).value()
    }
}

impl RecordHeader {
    /// As written.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [self.kind, self.flags, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.key_bytes.to_le_bytes());
        bytes[4..].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes
    }

    /// From what was written.
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
    /// As written.
    #[must_use]
    pub fn to_bytes(self) -> [u8; END_BYTES] {
        let mut bytes = [0; END_BYTES];
        bytes[..8].copy_from_slice(&self.item_count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stream_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }
}

/// The `N` bytes from `at` on.
pub(super) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

const _: () = {
    assert!(CHECKSUM_AT + 4 == HEADER_BYTES && BLOCK_CHECKSUM_AT + 4 == BLOCK_HEADER_BYTES);
    assert!(RECORD_HEADER_BYTES + 8 + crate::Limits::KEY_BYTES_MAX + WHOLE_VALUE_BYTES_MAX <= BLOCK_BYTES_MAX);
    assert!(PIECE_BYTES <= BLOCK_BYTES_MAX && crate::Limits::VALUE_BYTES_MAX <= u32::MAX as u64);
};
