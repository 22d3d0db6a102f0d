//! Canaries of these tables: each names a rule that a broken variant leaves out
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// A slot's token is set before its item is durable.
pub const TOKEN_BEFORE_ITEM: Canary = Canary("RivalTokenBeforeItem");
/// An update's log is valid before it is durable.
pub const LOG_NOT_ORDERED: Canary = Canary("RivalLogNotOrdered");
/// An update changes the item in place without the log.
pub const UPDATE_NOT_LOGGED: Canary = Canary("RivalUpdateNotLogged");
/// A move empties the old slot before the new one is durable.
pub const EMPTIED_BEFORE_MOVED: Canary = Canary("RivalEmptiedBeforeMoved");
/// Opening leaves both of two equal items that a move left.
pub const DUPLICATE_LEFT: Canary = Canary("RivalDuplicateLeft");
