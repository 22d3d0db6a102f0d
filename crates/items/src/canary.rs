//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// The item is written but never flushed.
pub const ITEM_NOT_FLUSHED: Canary = Canary("ItemNotFlushed");
