//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

pub use engine::canary::{MOVE_FREES_EARLY, MOVE_UNCHECKED};
use pmem::Canary;

/// The item is flushed but not ordered before its entry.
pub const ITEM_NOT_ORDERED: Canary = Canary("ItemNotOrdered");
/// The entry is published before the item is written.
pub const ENTRY_BEFORE_ITEM: Canary = Canary("EntryBeforeItem");
/// Delete stores a plain zero, unflushed, and frees the item immediately.
pub const PLAIN_ZERO_DELETE: Canary = Canary("PlainZeroDelete");
/// The replaced item is freed before the new entry is durable.
pub const FREE_BEFORE_UNLINK: Canary = Canary("FreeBeforeUnlink");
/// The clean image is named before it is durable, and an older image at its place is trusted: numbers are not compared.
pub const STALE_IMAGE: Canary = Canary("StaleImage");
/// The clean image is named before it is durable, and trusted without a comparison of its checksum.
pub const TORN_IMAGE: Canary = Canary("TornImage");
/// A group of puts clears its marks before the commit that the puts share.
pub const SETTLED_BEFORE_COMMIT: Canary = Canary("SettledBeforeCommit");
/// A conditional write takes place although the key's entry has changed since it was read.
pub const CAS_IGNORES_CHANGE: Canary = Canary("CasIgnoresChange");
/// A batch's conditions are judged before its pairs are locked.
pub const CONDITION_OUTSIDE_LOCK: Canary = Canary("ConditionOutsideLock");
/// A batch ignores the condition of a key that it also writes.
pub const CONDITION_OF_WRITTEN_KEY_FORGOTTEN: Canary = Canary("ConditionOfWrittenKeyForgotten");
/// The reaper deletes a key that was renewed after the reaper found it expired.
pub const REAPS_RENEWED: Canary = Canary("ReapsRenewed");
/// Changes are not noted in the delta while the ordered index is built.
pub const CHANGE_MISSES_DELTA: Canary = Canary("ChangeMissesDelta");
/// A replaced item is freed before the change is applied to the ordered index.
pub const RETIRE_BEFORE_TREE: Canary = Canary("RetireBeforeTree");
/// A writer does not check again, under the bucket's lock, whether a snapshot was taken since it stamped its item.
pub const STALE_STAMP: Canary = Canary("StaleStamp");
/// A snapshot does not wait for the writers that were active when it was taken.
pub const SNAPSHOT_BEFORE_WRITERS: Canary = Canary("SnapshotBeforeWriters");
/// A replaced item is kept for snapshots only after its replacement is visible.
pub const KEPT_AFTER_PUBLISH: Canary = Canary("KeptAfterPublish");
/// A scan that does not wait itself records no ticket for its caller to wait for.
pub const DEFERRED_SCAN_REPORTED: Canary = Canary("DeferredScanReported");
