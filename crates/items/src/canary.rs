//! Broken variants of this crate's rules (`docs/decisions/0005-canaries-are-asked-of-the-medium.md`).

use pmem::Canary;

/// The item is written but never flushed.
pub const ITEM_NOT_FLUSHED: Canary = Canary("ItemNotFlushed");
