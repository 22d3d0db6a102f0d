//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// The item is written but never flushed.
pub const ITEM_NOT_FLUSHED: Canary = Canary("ItemNotFlushed");
/// The item is flushed, but nothing orders it before its entry.
pub const ITEM_NOT_ORDERED: Canary = Canary("ItemNotOrdered");
/// The replaced item is free before the new entry is durable.
pub const FREE_BEFORE_UNLINK: Canary = Canary("FreeBeforeUnlink");
/// A node's lock is released before the change under it is committed.
pub const UNLOCKED_BEFORE_COMMIT: Canary = Canary("UnlockedBeforeCommit");
/// A deleted key's word is not flushed.
pub const DELETE_NOT_FLUSHED: Canary = Canary("DeleteNotFlushed");
/// A leaf's count is raised before the pair behind its last is durable.
pub const COUNT_BEFORE_PAIR: Canary = Canary("CountBeforePair");
/// A value is written over another one that is in no run.
pub const IN_PLACE_NOT_LOGGED: Canary = Canary("InPlaceNotLogged");
/// A node is linked that was never flushed.
pub const NODE_NOT_FLUSHED: Canary = Canary("NodeNotFlushed");
/// A split's run does not have the parent's words.
pub const PARENT_OUTSIDE_RUN: Canary = Canary("ParentOutsideRun");
/// The root's word refers to a node that was never flushed.
pub const ROOT_BEFORE_NODE: Canary = Canary("RootBeforeNode");
/// A separator is a leaf's own key, which is freed with the leaf's pair.
pub const KEY_UNDER_SEPARATOR: Canary = Canary("KeyUnderSeparator");
/// A merge's run does not have the parent's pairs.
pub const MERGE_HALF_LOGGED: Canary = Canary("MergeHalfLogged");
/// Merged nodes, and the keys that only they referred to, are freed before the merge is durable.
pub const MERGED_FREED_EARLY: Canary = Canary("MergedFreedEarly");
/// The heads of a node's separators stay when the separators change.
pub const HEADS_KEPT: Canary = Canary("HeadsKept");
/// A scan goes back to a node without checking whether the node has changed.
pub const CHANGES_UNSEEN: Canary = Canary("ChangesUnseen");
/// The count of stamp blocks is not flushed.
pub const STAMP_BLOCK_NOT_FLUSHED: Canary = Canary("StampBlockNotFlushed");
/// A batch's conditions are checked before it has all lanes.
pub const CONDITION_OUTSIDE_LANES: Canary = Canary("ConditionOutsideLanes");
/// A batch's run has the words of half of its keys.
pub const BATCH_HALF_LOGGED: Canary = Canary("BatchHalfLogged");
/// A sweep returns while another thread's sweep is still freeing space.
pub const SWEEP_NOT_AWAITED: Canary = Canary("SweepNotAwaited");
