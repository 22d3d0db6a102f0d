//! Broken variants of a move (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// A moved item is published without checking the key's present item.
pub const MOVE_UNCHECKED: Canary = Canary("MoveUnchecked");
/// A moved item's old slot is freed before the copy is published.
pub const MOVE_FREES_EARLY: Canary = Canary("MoveFreesEarly");
