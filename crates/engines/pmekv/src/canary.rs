//! Broken twins of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// Recovery counts the last entry of a lane without a look at its record.
pub const RECORD_BELIEVED: Canary = Canary("RecordBelieved");
/// Recovery ends a lane at the first entry whose record does not fit, though it was superseded and its room reused.
pub const ENDED_BY_BAD_RECORD: Canary = Canary("EndedByBadRecord");
/// Recovery leaves an entry that does not count as it stands in the log.
pub const DROPPED_NOT_VOIDED: Canary = Canary("DroppedNotVoided");
/// A write is acknowledged though its commit was not asked for.
pub const ACKNOWLEDGED_BEFORE_COMMIT: Canary = Canary("AcknowledgedBeforeCommit");
/// The tree learns of a change whose commit has not been asked for.
pub const TREE_BEFORE_COMMIT: Canary = Canary("TreeBeforeCommit");
/// A change that the tree cannot learn of stays in the log.
pub const NOT_TAKEN_BACK: Canary = Canary("NotTakenBack");
/// The old record's room is free while the entry that ends it is not durable.
pub const FREED_BEFORE_COMMIT: Canary = Canary("FreedBeforeCommit");
/// Openings are not told apart: a lane goes on in the segment that it finds, over what a crash has torn there.
pub const OPENING_NOT_COUNTED: Canary = Canary("OpeningNotCounted");
/// A lane's word names a segment whose header nothing orders before it.
pub const WORD_BEFORE_HEADER: Canary = Canary("WordBeforeHeader");
/// A checkpoint cuts lanes where they end once the tree was read, not where they ended before.
pub const MARKS_AFTER_TREE: Canary = Canary("MarksAfterTree");
/// A checkpoint frees the nodes and segments of the one before while the root still names it.
pub const FREED_BEFORE_ROOT: Canary = Canary("FreedBeforeRoot");
/// The root names a checkpoint that nothing orders before it.
pub const ROOT_BEFORE_NODES: Canary = Canary("RootBeforeNodes");
/// A checkpoint's record is written over the one that the root names.
pub const RECORD_IN_PLACE: Canary = Canary("RecordInPlace");
/// Keys are added though there are no slots for the nodes that they will need, as versions did that had no reserve.
pub const NODES_NOT_RESERVED: Canary = Canary("NodesNotReserved");
/// What was promised for keys that are deleted goes to others while a checkpoint reads the tree.
pub const GONE_WHILE_READ: Canary = Canary("GoneWhileRead");
/// An opening leaves the slots of the reserve to others.
pub const RESERVE_NOT_KEPT: Canary = Canary("ReserveNotKept");
/// Slots that deletes leave in a full region, and that the reserve does not need, go to whatever wants room first.
pub const SURPLUS_NOT_KEPT: Canary = Canary("SurplusNotKept");
/// Recovery applies a lane's entries from the last to the first.
pub const REPLAYED_BACKWARDS: Canary = Canary("ReplayedBackwards");
/// A key's changes go to any lane, not to the key's.
pub const KEY_IN_ANY_LANE: Canary = Canary("KeyInAnyLane");
/// Recovery takes a place for one record, whichever lane's entries name it.
pub const PLACE_OF_ANY_LANE: Canary = Canary("PlaceOfAnyLane");
/// Entries of a batch count without the line that ends it.
pub const BATCH_WITHOUT_LINE: Canary = Canary("BatchWithoutLine");
/// The line that ends a batch is not ordered after its entries.
pub const BATCH_LINE_NOT_ORDERED: Canary = Canary("BatchLineNotOrdered");
/// A checkpoint cuts lane by lane, and so through a batch.
pub const BATCH_CUT_APART: Canary = Canary("BatchCutApart");
/// Batches of each opening are numbered from the same number on.
pub const BATCH_NUMBER_RETURNS: Canary = Canary("BatchNumberReturns");
/// Changes of several keys are acknowledged though no commit was asked for.
pub const GROUP_NOT_COMMITTED: Canary = Canary("GroupNotCommitted");
/// An entry of changes of several says that those before it in its group are durable.
pub const GROUP_SAID_DURABLE: Canary = Canary("GroupSaidDurable");
/// What a killed process had stored is relied on, and not made durable.
pub const TAIL_LEFT_AS_FOUND: Canary = Canary("TailLeftAsFound");
