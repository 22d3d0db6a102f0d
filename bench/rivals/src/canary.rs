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

/// FPTree: an entry's bit may be durable before its fingerprint.
pub const FPTREE_BITMAP_BEFORE_FINGERPRINT: Canary = Canary("FpTreeBitmapBeforeFingerprint");
/// FPTree: an update takes the old entry's bit away before it sets the new one's.
pub const FPTREE_OLD_BIT_OFF_FIRST: Canary = Canary("FpTreeOldBitOffFirst");
/// FPTree: a split changes the old leaf before the new one is durable.
pub const FPTREE_NEXT_BEFORE_LEAF: Canary = Canary("FpTreeNextBeforeLeaf");
/// FPTree: a split's log may become durable after the old leaf's bitmap.
pub const FPTREE_LOG_NOT_ORDERED: Canary = Canary("FpTreeLogNotOrdered");
/// FPTree: opening believes the lock of a leaf, although no writer lives.
pub const FPTREE_LOCK_BELIEVED: Canary = Canary("FpTreeLockBelieved");
/// NV-Tree: a leaf's number of entries may be durable before the entry.
pub const NV_TREE_COUNT_BEFORE_ENTRY: Canary = Canary("NvTreeCountBeforeEntry");
/// NV-Tree: a replacement changes the list before the new leaves are durable.
pub const NV_TREE_NEXT_BEFORE_LEAF: Canary = Canary("NvTreeNextBeforeLeaf");
/// NV-Tree: opening believes the lock of a leaf, although no writer lives.
pub const NV_TREE_LOCK_BELIEVED: Canary = Canary("NvTreeLockBelieved");
