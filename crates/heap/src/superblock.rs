//! The superblock: the identity and parameters of a region, in two copies.
//!
//! ```text
//!        0 ┌───────────────────────────────┬───────────────┬───────────────┬───────────────────────────────┐
//!          │ magic                       8 │ major       2 │ minor       2 │ engine                      4 │
//!       16 ├───────────────────────────────┴───────────────┴───────────────┴───────────────────────────────┤
//!          │ uuid                                                                                       16 │
//!       32 ├───────────────────────────────┬───────────────────────────────┬───────────────────────────────┤
//!          │ hash seed                   8 │ partition count             4 │ segment bytes               4 │
//!       48 ├───────────────────────────────┼───────────────────────────────┼───────────────────────────────┤
//!          │ unit bytes  4 │ features    4 │ region bytes                8 │                               │
//!       64 ├───────────────┴───────────────┼───────────────┬───────────────┘
//!          │ sequence                    8 │ crc32c      4 │  over the 72 bytes before it; then zero to 4096
//!       76 └───────────────────────────────┴───────────────┘
//! ```
//!
//! Every version keeps the place of magic, version and checksum, so that an older program can distinguish a newer
//! store from a damaged one. A newer minor version can be read and written by this program; an incompatible addition
//! sets a feature flag.

use pmem::{Medium, Offset, crc32c};

use core::sync::atomic::Ordering;

use crate::layout::{PARTITION_COUNT_MAX, REGION_BYTES_MAX, SEGMENT_BYTES, SUPERBLOCK_COPIES, UNIT_BYTES};
use crate::{EngineNumber, HeapError};

/// The first bytes of a region. They are not text in any encoding, and a transfer in text mode visibly damages them.
pub const MAGIC: [u8; 8] = *b"\x89hikv\r\n\x1a";
/// The format this program writes; it reads no other major version.
pub const FORMAT_MAJOR: u16 = 1;
/// The newest minor version of this major version.
pub const FORMAT_MINOR: u16 = 3;
/// The feature flag of a region that may have a clean image: a program without this feature would change the region
/// and leave the image named. New regions have the flag; those of version 1.0 never get an image.
pub const FEATURE_IMAGE: u32 = 1;
/// The feature flag of a region that may hold items which expire: a program without this feature would never hide
/// them.
pub const FEATURE_EXPIRY: u32 = 2;
/// The feature flag of a region that may hold an unfinished batch: a program without this feature would treat marked
/// entries as finished. It is set before the region's first batch.
pub const FEATURE_BATCHES: u32 = 4;
/// The feature flag of a region that is the base of a journal: without the log the store is incomplete.
pub const FEATURE_JOURNAL: u32 = 16;
/// The feature flag of a PMEKV region with keys in its nodes: a program without this feature would misread their
/// bytes.
pub const FEATURE_KEYS_IN_NODES: u32 = 32;
/// The feature flag of an InK region whose values hold a tag of their keys: a program without this feature would
/// write values without tags, and treat tagged values as damaged.
pub const FEATURE_TAGGED_VALUES: u32 = 64;
/// The feature flag of a region that may have named trees: a program without this feature would take the stored keys of
/// all trees for those of one. It is set before the region's first tree.
pub const FEATURE_TREES: u32 = 128;
/// The feature flags that this program supports.
pub const FEATURES_KNOWN: u32 = FEATURE_IMAGE
    | FEATURE_EXPIRY
    | FEATURE_BATCHES
    | FEATURE_JOURNAL
    | FEATURE_KEYS_IN_NODES
    | FEATURE_TAGGED_VALUES
    | FEATURE_TREES;

pub(crate) const CHECKED_BYTES: usize = 72;
const WORD_COUNT: usize = 16;
pub(crate) type Bytes = [u8; WORD_COUNT * 8];

/// The identity and parameters of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// The minor version of the program that wrote it.
    pub format_minor: u16,
    /// Features that a program must support to use the region: flags such as [`FEATURE_IMAGE`].
    pub features: u32,
    /// The region's engine.
    pub engine: EngineNumber,
    /// The store's identity.
    pub uuid: [u8; 16],
    /// The key of the index's hash.
    pub hash_seed: u64,
    /// Parallel units of the engine: partitions of its index, or lanes.
    pub partition_count: u32,
    /// The region's length.
    pub region_bytes: u64,
    /// Increments on each rewrite: the valid copy with the higher number is the newer one.
    pub sequence: u64,
}

/// The reason why a copy cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unusable {
    NoMagic,
    /// Damaged, or torn by a crash, with the version in it.
    BadChecksum {
        major: u16,
    },
    /// Intact, but not supported by this program.
    Refused(HeapError),
}

/// The usable copy, and the offset of the other one if that must be rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    pub(crate) superblock: Superblock,
    pub(crate) stale: Option<Offset>,
}

impl Superblock {
    /// Stores the copy at `at` and flushes it. The caller orders it.
    pub(crate) fn store<M: Medium>(&self, medium: &M, at: Offset) {
        let bytes = self.encode();
        for (word, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
            medium.store(at.plus(word as u64 * 8), u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        Superblock::flush(medium, at);
    }

    /// Flushes the copy at `at` as it is.
    pub(crate) fn flush<M: Medium>(medium: &M, at: Offset) {
        medium.flush(at.span(size_of::<Bytes>() as u64));
    }

    /// Reads both copies and chooses the better one. Writes nothing.
    pub(crate) fn load<M: Medium>(medium: &M) -> Result<Chosen, HeapError> {
        choose(SUPERBLOCK_COPIES.map(|at| decode(&read(medium, at), at)))
    }

    fn encode(&self) -> Bytes {
        let mut bytes = [0; WORD_COUNT * 8];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &FORMAT_MAJOR.to_le_bytes());
        put(10, &self.format_minor.to_le_bytes());
        put(12, &self.engine.0.to_le_bytes());
        put(16, &self.uuid);
        put(32, &self.hash_seed.to_le_bytes());
        put(40, &self.partition_count.to_le_bytes());
        put(44, &(SEGMENT_BYTES as u32).to_le_bytes());
        put(48, &(UNIT_BYTES as u32).to_le_bytes());
        put(52, &self.features.to_le_bytes());
        put(56, &self.region_bytes.to_le_bytes());
        put(64, &self.sequence.to_le_bytes());
        let checksum = crc32c(0, &bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..CHECKED_BYTES + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// Reads the bytes at `at`. Bytes beyond the medium's end read as zero.
pub(crate) fn read<M: Medium>(medium: &M, at: Offset) -> Bytes {
    let mut bytes = [0; WORD_COUNT * 8];
    for (word, chunk) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let from = at.plus(word as u64 * 8);
        if from.0 + 8 <= medium.len_bytes() {
            *chunk = medium.load(from, Ordering::Relaxed).to_le_bytes();
        }
    }
    bytes
}

fn field<const N: usize>(bytes: &Bytes, at: usize) -> [u8; N] {
    core::array::from_fn(|i| bytes[at + i])
}

pub(crate) fn decode(bytes: &Bytes, at: Offset) -> Result<Superblock, Unusable> {
    let u16_at = |at| u16::from_le_bytes(field(bytes, at));
    let u32_at = |at| u32::from_le_bytes(field(bytes, at));
    let u64_at = |at| u64::from_le_bytes(field(bytes, at));
    if bytes[..8] != MAGIC {
        return Err(Unusable::NoMagic);
    }
    if crc32c(0, &bytes[..CHECKED_BYTES]) != u32_at(CHECKED_BYTES) {
        return Err(Unusable::BadChecksum { major: u16_at(8) });
    }
    refuse(u16_at(8), u32_at(52))?;
    let superblock = Superblock {
        format_minor: u16_at(10),
        features: u32_at(52),
        engine: EngineNumber(u32_at(12)),
        uuid: field(bytes, 16),
        hash_seed: u64_at(32),
        partition_count: u32_at(40),
        region_bytes: u64_at(56),
        sequence: u64_at(64),
    };
    let sizes = [u32_at(44), u32_at(48)];
    superblock.implausible(sizes).map_or(Ok(superblock), |(field_at, what)| {
        Err(Unusable::Refused(HeapError::Damaged { offset: at.0 + field_at, what }))
    })
}

/// Refuses a version or a feature that this program does not support.
fn refuse(major: u16, features: u32) -> Result<(), Unusable> {
    let refused = if major > FORMAT_MAJOR {
        HeapError::Newer { found: major, supported: FORMAT_MAJOR }
    } else if features & !FEATURES_KNOWN != 0 {
        HeapError::UnknownFeatures { flags: features & !FEATURES_KNOWN }
    } else {
        return Ok(());
    };
    Err(Unusable::Refused(refused))
}

impl Superblock {
    /// Refuses the region of another engine.
    pub(crate) fn confirm_engine(&self, wanted: EngineNumber) -> Result<(), HeapError> {
        let found = self.engine;
        if found == wanted { Ok(()) } else { Err(HeapError::WrongEngine { found, wanted }) }
    }

    /// Finds the first field with a value that no writer of this format stores: its offset in the superblock and a
    /// message.
    fn implausible(&self, [segment_bytes, unit_bytes]: [u32; 2]) -> Option<(u64, &'static str)> {
        let checks = [
            (
                self.partition_count == 0 || self.partition_count > PARTITION_COUNT_MAX,
                40,
                "the partition count is out of range",
            ),
            (u64::from(segment_bytes) != SEGMENT_BYTES, 44, "the segment size is not supported"),
            (u64::from(unit_bytes) != UNIT_BYTES, 48, "the unit size is not supported"),
            (!is_region_length(self.region_bytes), 56, "the region's length is out of range"),
        ];
        checks.into_iter().find(|check| check.0).map(|(_, at, what)| (at, what))
    }
}

/// Returns true for full units, at least the head, and at most the length that chunk headers can count.
fn is_region_length(bytes: u64) -> bool {
    bytes.is_multiple_of(UNIT_BYTES) && (UNIT_BYTES..=REGION_BYTES_MAX).contains(&bytes)
}

/// Chooses the newer of two valid copies. A bad copy is skipped, unless it is intact but not supported by this
/// program.
pub(crate) fn choose(copies: [Result<Superblock, Unusable>; 2]) -> Result<Chosen, HeapError> {
    let [at_a, at_b] = SUPERBLOCK_COPIES;
    match copies {
        [Ok(a), Ok(b)] if b.sequence > a.sequence => Ok(Chosen { superblock: b, stale: Some(at_a) }),
        [Ok(a), Ok(b)] => Ok(Chosen { superblock: a, stale: (a != b).then_some(at_b) }),
        [Err(Unusable::Refused(error)), _] | [_, Err(Unusable::Refused(error))] => Err(error),
        [Ok(a), Err(_)] => Ok(Chosen { superblock: a, stale: Some(at_b) }),
        [Err(_), Ok(b)] => Ok(Chosen { superblock: b, stale: Some(at_a) }),
        [Err(a), Err(b)] => Err(hopeless(a, b)),
    }
}

/// Returns the error for two bad copies. Copies that agree on a newer version count as that version, whatever their
/// checksum means there.
fn hopeless(a: Unusable, b: Unusable) -> HeapError {
    match (a, b) {
        (Unusable::NoMagic, Unusable::NoMagic) => HeapError::Foreign,
        (Unusable::BadChecksum { major }, Unusable::BadChecksum { major: other })
            if major == other && major > FORMAT_MAJOR =>
        {
            HeapError::Newer { found: major, supported: FORMAT_MAJOR }
        }
        _ => HeapError::Damaged { offset: SUPERBLOCK_COPIES[0].0, what: "neither copy of the superblock is intact" },
    }
}
