//! The layout of a tree.
//!
//! ```text
//! line 0 of the engine area
//!   +0  root, a pointer word, 8
//!   +8  blocks of stamps that were taken, sealed, 8
//!
//! a node of order n: 16 (n + 1) bytes, a slot of that class
//!   +0  meta, sealed, 8                    level (8 bits), pairs (16 bits); a leaf's level is 0
//!   +8  leaf: 0; inner: the first child, a pointer word, 8
//!   +16 pairs, 16 each
//!         +0  key word
//!         +8  leaf: value word, 0 for a key that was deleted; inner: child, whose keys are not below this key
//!
//! a pointer word (root, child, value)      a key word
//!   bits 0..48   offset                      the same, except
//!   bits 48..56  size class; 255: extent     bits 56..64  low byte of the key's checksum
//!   bits 56..64  check of the others
//!
//! a key chunk                              a value chunk
//!   +0  length, 2                            +0  length, 4
//!   +2  zero, 2                              +4  flags, 4: bit 0: an expiry follows
//!   +4  crc32c of +0..4 and the key, 4       +8  crc32c of all but itself, 4
//!   +8  key                                  +12 tag, 4: the key's checksum xor offset / 16; 0 in a
//!                                                tree that an earlier release made
//!                                            +16 stamp, 8
//!                                            +24 expiry, 8, if there is one; then the value
//! ```

use heap::Class;
use heap::layout::ENGINE_AREA;
use pmem::{Offset, Span};

/// The root's pointer word.
pub const ROOT: Offset = ENGINE_AREA;
/// The number of blocks of stamps that were taken.
pub const STAMP_BLOCKS: Offset = ENGINE_AREA.plus(8);

/// The orders that a tree can have: a node with its header is then a power of two long.
pub const ORDERS: [usize; 6] = [7, 15, 31, 63, 127, ORDER_MAX];
/// The greatest of them.
pub const ORDER_MAX: usize = 255;
/// The order that the paper found best.
pub const ORDER_DEFAULT: usize = 63;
/// The longest key.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// The longest value.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// The size of a node's header, before its pairs.
pub const NODE_HEADER_BYTES: u64 = 16;
/// The size of a pair: a key word and a value word, or a key word and a child.
pub const PAIR_BYTES: u64 = 16;
/// The most levels of a tree: far more than any region can hold.
pub(crate) const LEVEL_MAX: u8 = 40;

/// The size of a key chunk's header, before its key.
pub const KEY_HEADER_BYTES: u64 = 8;
/// The size of a value chunk's header, before its expiry or its value.
pub const VALUE_HEADER_BYTES: u64 = 24;
/// The size of the expiry, if there is one.
pub const EXPIRY_BYTES: u64 = 8;

/// Returns the size class of nodes of an order.
#[must_use]
pub fn node_class(order: usize) -> Option<Class> {
    if ORDERS.contains(&order) { Class::for_bytes(node_bytes(order)) } else { None }
}

/// Returns the order of nodes of a class, if nodes can have it.
#[must_use]
pub fn order_of(class: Class) -> Option<usize> {
    let order = (class.bytes() / PAIR_BYTES) as usize - 1;
    node_class(order).filter(|found| *found == class).map(|_| order)
}

/// Returns the bytes of a node.
#[must_use]
pub const fn node_bytes(order: usize) -> u64 {
    NODE_HEADER_BYTES + order as u64 * PAIR_BYTES
}

/// Returns the span of pairs `from` to `past` of a node.
pub(crate) const fn pairs(node: Offset, from: usize, past: usize) -> Span {
    node.plus(NODE_HEADER_BYTES + from as u64 * PAIR_BYTES).span((past - from) as u64 * PAIR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_fill_their_class() {
        for order in [7, 15, 31, 63, 127, 255] {
            let class = node_class(order).unwrap();
            assert_eq!((class.bytes(), order_of(class)), (node_bytes(order), Some(order)));
        }
        assert!([0, 3, 8, 62, 511].into_iter().all(|order| node_class(order).is_none()));
        assert_eq!(Class::for_bytes(144).and_then(order_of), None);
    }
}
