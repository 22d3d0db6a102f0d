//! Broken twins of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// The item is flushed, but nothing orders it before its entry.
pub const ITEM_NOT_ORDERED: Canary = Canary("ItemNotOrdered");
/// The position is published in one line write without its signature, which follows later.
pub const TORN_PAIR: Canary = Canary("TornPair");
/// On memory a word loses its mark before the commit that makes it durable.
pub const MARK_LOST_UNCOMMITTED: Canary = Canary("MarkLostUncommitted");
/// On memory a word loses its mark by a plain store when its pair is unlocked already.
pub const MARK_LOST_UNLOCKED: Canary = Canary("MarkLostUnlocked");
/// Delete stores a plain zero, unflushed, and hands the item out again.
pub const PLAIN_ZERO_DELETE: Canary = Canary("PlainZeroDelete");
/// A reader returns what it saw without settling the mark.
pub const UNSETTLED_READ: Canary = Canary("UnsettledRead");
/// An entry outside its home line is published before the home line's overflow bit is durable.
pub const OVERFLOW_BIT_LATE: Canary = Canary("OverflowBitLate");
/// A split is committed before the new segments are durable.
pub const SPLIT_BEFORE_SEGMENTS: Canary = Canary("SplitBeforeSegments");
/// Recovery leaves the old segment of a committed split alive.
pub const GHOST_SEGMENT: Canary = Canary("GhostSegment");
/// The split record is cleared before the states of the segments are durable.
pub const RECORD_CLEARED_EARLY: Canary = Canary("RecordClearedEarly");
/// A split leads writers to its halves before it leads readers there.
pub const WRITERS_LED_FIRST: Canary = Canary("WritersLedFirst");
/// What looks for several keys told is believed, though readers were led elsewhere meanwhile.
pub const LEAD_NOT_COMPARED: Canary = Canary("LeadNotCompared");
/// A reader that finds nothing says so without a fence.
pub const MISS_NOT_FENCED: Canary = Canary("MissNotFenced");
/// A batch sets the overflow bits of the chosen entries at once, and leaves them unordered if given up.
pub const WAYS_MARKED_EARLY: Canary = Canary("WaysMarkedEarly");
/// The sweep does not see what a split moved while it ran.
pub const SWEEP_MISSES_SPLIT: Canary = Canary("SweepMissesSplit");
/// A writer relies on what a killed process left of a segment, and does not make it durable.
pub const SEGMENT_LEFT_AS_FOUND: Canary = Canary("SegmentLeftAsFound");
/// `clear` commits before the new segments are durable.
pub const CLEAR_BEFORE_SEGMENTS: Canary = Canary("ClearBeforeSegments");
/// What `clear` has unlinked stays alive, as another generation's, until readers let go of it.
pub const CLEARED_UNBURIED: Canary = Canary("ClearedUnburied");
/// A batch's entries are published without the mark that makes readers and recovery ask the batch.
pub const HALF_BATCH: Canary = Canary("HalfBatch");
/// A batch's word names its record before that is durable.
pub const BATCH_BEFORE_RECORD: Canary = Canary("BatchBeforeRecord");
/// A batch is committed before its entries are durable.
pub const BATCH_BEFORE_ENTRIES: Canary = Canary("BatchBeforeEntries");
/// A batch's word is cleared before its entries without their marks are durable.
pub const BATCH_FORGOTTEN_EARLY: Canary = Canary("BatchForgottenEarly");
/// The same when a batch is finished by opening.
pub const RECOVERED_BATCH_FORGOTTEN_EARLY: Canary = Canary("RecoveredBatchForgottenEarly");
/// A batch's word is not cleared, and opening carries it out again, whatever the entries hold by then.
pub const BATCH_REPLAYED: Canary = Canary("BatchReplayed");
/// A write that its caller is going to wait for takes its mark away at once.
pub const DEFERRED_SETTLED: Canary = Canary("DeferredSettled");
/// The copy that a split makes of an entry which is not durable says that it is.
pub const SPLIT_SETTLES_FRESH: Canary = Canary("SplitSettlesFresh");
/// A batch that nobody has waited for takes its marks away, and none takes their place.
pub const BATCH_SETTLED_EARLY: Canary = Canary("BatchSettledEarly");
/// A batch whose word a failed log did not take in is finished as if it had.
pub const FAILED_BATCH_FINISHED: Canary = Canary("FailedBatchFinished");
