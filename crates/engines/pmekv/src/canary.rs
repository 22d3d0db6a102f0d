//! Broken variants of this crate's rules, for tests of the checkers
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// Recovery accepts the last entry of a lane without checking its record.
pub const RECORD_BELIEVED: Canary = Canary("RecordBelieved");
/// Recovery ends a lane at the first entry whose record does not match, even if the record was superseded and its slot
/// reused.
pub const ENDED_BY_BAD_RECORD: Canary = Canary("EndedByBadRecord");
/// Recovery leaves an invalid entry unchanged in the log.
pub const DROPPED_NOT_VOIDED: Canary = Canary("DroppedNotVoided");
/// A write is acknowledged although its commit was not requested.
pub const ACKNOWLEDGED_BEFORE_COMMIT: Canary = Canary("AcknowledgedBeforeCommit");
/// The tree is updated before the commit is requested.
pub const TREE_BEFORE_COMMIT: Canary = Canary("TreeBeforeCommit");
/// A change that cannot be applied to the tree stays in the log.
pub const NOT_TAKEN_BACK: Canary = Canary("NotTakenBack");
/// The old record's slot is freed before the entry that ends the record is durable.
pub const FREED_BEFORE_COMMIT: Canary = Canary("FreedBeforeCommit");
/// Openings are not numbered: a lane continues in the segment that it finds, over lines that a crash may have torn.
pub const OPENING_NOT_COUNTED: Canary = Canary("OpeningNotCounted");
/// A lane's word names a segment whose header is not ordered before the word.
pub const WORD_BEFORE_HEADER: Canary = Canary("WordBeforeHeader");
/// A checkpoint takes the cuts after reading the tree, not before.
pub const MARKS_AFTER_TREE: Canary = Canary("MarksAfterTree");
/// A checkpoint frees the nodes and segments of the previous checkpoint while the root still names it.
pub const FREED_BEFORE_ROOT: Canary = Canary("FreedBeforeRoot");
/// The root names a checkpoint that is not ordered before the root.
pub const ROOT_BEFORE_NODES: Canary = Canary("RootBeforeNodes");
/// A checkpoint's record overwrites the record that the root names.
pub const RECORD_IN_PLACE: Canary = Canary("RecordInPlace");
/// Keys are added without slots for the nodes that they will need, as in versions that had no reserve.
pub const NODES_NOT_RESERVED: Canary = Canary("NodesNotReserved");
/// The reservations of deleted keys are reused while a checkpoint reads the tree.
pub const GONE_WHILE_READ: Canary = Canary("GoneWhileRead");
/// An opening does not keep the slots of the reserve.
pub const RESERVE_NOT_KEPT: Canary = Canary("ReserveNotKept");
/// In a full region, slots that deletes leave and that the reserve does not need are freed for any use.
pub const SURPLUS_NOT_KEPT: Canary = Canary("SurplusNotKept");
/// Recovery applies a lane's entries from the last to the first.
pub const REPLAYED_BACKWARDS: Canary = Canary("ReplayedBackwards");
/// A change of a key is written to any lane, not to the key's lane.
pub const KEY_IN_ANY_LANE: Canary = Canary("KeyInAnyLane");
/// Recovery treats a place as one record, whichever lane's entries name it.
pub const PLACE_OF_ANY_LANE: Canary = Canary("PlaceOfAnyLane");
/// Entries of a batch are valid without the line that ends the batch.
pub const BATCH_WITHOUT_LINE: Canary = Canary("BatchWithoutLine");
/// The line that ends a batch is not ordered after the batch's entries.
pub const BATCH_LINE_NOT_ORDERED: Canary = Canary("BatchLineNotOrdered");
/// A checkpoint cuts one lane after the other, and so splits batches.
pub const BATCH_CUT_APART: Canary = Canary("BatchCutApart");
/// Each opening numbers its batches from the same number.
pub const BATCH_NUMBER_RETURNS: Canary = Canary("BatchNumberReturns");
/// Changes of several keys are acknowledged although no commit was requested.
pub const GROUP_NOT_COMMITTED: Canary = Canary("GroupNotCommitted");
/// An entry of a group records that the entries before it in the group are durable.
pub const GROUP_REPORTED_DURABLE: Canary = Canary("GroupReportedDurable");
/// Stores of a killed process are relied on without being made durable.
pub const TAIL_LEFT_AS_FOUND: Canary = Canary("TailLeftAsFound");
