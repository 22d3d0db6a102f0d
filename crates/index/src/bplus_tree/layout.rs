//! The layout of nodes. All fields are atomic, because readers read while writers write, and check versions
//! afterwards.
//!
//! ```text
//! leaf, 512 bytes
//! +---------+---------+-------+--------+--------+------------------+---------------+----------------+
//! | version | next    | count | prefix | -      | heads            | low words     | high words     |
//! | 8 bytes | 8       | 2     | bytes 2| 12     | 34 x 8           | 34 x 4        | 34 x 2         |
//! +---------+---------+-------+--------+--------+------------------+---------------+----------------+
//! inner node, 1024 bytes
//! +---------+---------+-------+--------+--------+------------------+---------------+----------------+
//! | version | prefix  | count | prefix | -      | heads            | children      | separators     |
//! | 8 bytes | head 8  | 2     | bytes 2| 12     | 41 x 8           | 42 x 8        | 41 x 8         |
//! +---------+---------+-------+--------+--------+------------------+---------------+----------------+
//! ```
//!
//! A *head* is eight bytes of a key (or separator) behind the node's prefix, big-endian, padded with zeros. Heads
//! sort like keys; whole keys decide ties. Unused heads are all ones, so that none is below any other head.

use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64};

use super::version::Version;

/// The maximum number of items in a leaf.
pub(super) const LEAF_COUNT_MAX: usize = 34;
/// A leaf with at most this number of items is merged with a neighbour if both fit into one leaf.
pub(super) const LEAF_COUNT_SPARSE: usize = LEAF_COUNT_MAX / 4;
/// The maximum number of separators in an inner node, which has one child more.
pub(super) const SEPARATOR_COUNT_MAX: usize = 41;

/// The number of bytes in a head.
pub(super) const HEAD_BYTES: usize = 8;
/// The value of unused heads.
pub(super) const UNUSED_HEAD: u64 = u64::MAX;

/// Heads in ascending order, the first `count` of which are used.
pub(super) type Heads<const N: usize> = [AtomicU64; N];

/// A leaf.
#[repr(C, align(64))]
pub(super) struct Leaf {
    pub(super) version: Version,
    /// The leaf to the right.
    pub(super) next: AtomicPtr<Leaf>,
    pub(super) count: AtomicU16,
    /// The number of leading bytes that every key in the leaf's range shares, and that heads omit.
    pub(super) prefix_bytes: AtomicU16,
    pub(super) unused: [u8; 12],
    pub(super) heads: Heads<LEAF_COUNT_MAX>,
    /// The low 32 of the 48 bits of positions.
    pub(super) low_words: [AtomicU32; LEAF_COUNT_MAX],
    /// The high 16 bits.
    pub(super) high_words: [AtomicU16; LEAF_COUNT_MAX],
}

/// An inner node.
#[repr(C, align(64))]
pub(super) struct Inner {
    pub(super) version: Version,
    /// The head of the first separator, which starts with the prefix. It has no meaning without a prefix.
    pub(super) prefix_head: AtomicU64,
    /// The number of separators.
    pub(super) count: AtomicU16,
    /// The number of leading bytes that every separator shares, and that heads omit. Keys need not share them: a
    /// search compares them.
    pub(super) prefix_bytes: AtomicU16,
    pub(super) unused: [u8; 12],
    pub(super) heads: Heads<SEPARATOR_COUNT_MAX>,
    /// Leaves or inner nodes, depending on the level.
    pub(super) children: [AtomicPtr<u8>; SEPARATOR_COUNT_MAX + 1],
    pub(super) separators: [AtomicPtr<u8>; SEPARATOR_COUNT_MAX],
}

const _: () = {
    assert!(size_of::<Leaf>() == 512 && size_of::<Inner>() == 1024);
    assert!(std::mem::offset_of!(Leaf, heads) == 32 && std::mem::offset_of!(Inner, heads) == 32);
};
