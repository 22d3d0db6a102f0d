//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// The item is flushed, but not ordered before its entry.
pub const ITEM_NOT_ORDERED: Canary = Canary("ItemNotOrdered");
/// The position is published alone in one line write, and its signature follows later.
pub const TORN_PAIR: Canary = Canary("TornPair");
/// On memory, a word loses its mark before the commit that makes it durable.
pub const MARK_LOST_UNCOMMITTED: Canary = Canary("MarkLostUncommitted");
/// On memory, a word loses its mark by a plain store after its pair was unlocked.
pub const MARK_LOST_UNLOCKED: Canary = Canary("MarkLostUnlocked");
/// A removal stores a plain zero without a flush, and frees the item's slot.
pub const PLAIN_ZERO_DELETE: Canary = Canary("PlainZeroDelete");
/// A reader returns a value without settling the mark.
pub const UNSETTLED_READ: Canary = Canary("UnsettledRead");
/// An entry outside its home line is published before the home line's overflow bit is durable.
pub const OVERFLOW_BIT_LATE: Canary = Canary("OverflowBitLate");
/// A split is committed before the new segments are durable.
pub const SPLIT_BEFORE_SEGMENTS: Canary = Canary("SplitBeforeSegments");
/// Recovery leaves the old segment of a committed split alive.
pub const GHOST_SEGMENT: Canary = Canary("GhostSegment");
/// The split record is cleared before the states of the segments are durable.
pub const RECORD_CLEARED_EARLY: Canary = Canary("RecordClearedEarly");
/// A split directs writers to its halves before it directs readers there.
pub const WRITERS_LED_FIRST: Canary = Canary("WritersLedFirst");
/// The results of a lookup of several keys are trusted although readers were directed elsewhere during it.
pub const LEAD_NOT_COMPARED: Canary = Canary("LeadNotCompared");
/// A reader reports an absence without a fence.
pub const MISS_NOT_FENCED: Canary = Canary("MissNotFenced");
/// A batch sets the overflow bits of the chosen entries immediately, and leaves them unordered if it is abandoned.
pub const WAYS_MARKED_EARLY: Canary = Canary("WaysMarkedEarly");
/// The sweep misses the entries that a split moved during the sweep.
pub const SWEEP_MISSES_SPLIT: Canary = Canary("SweepMissesSplit");
/// A writer relies on a segment as a killed process left it, and does not make it durable.
pub const SEGMENT_LEFT_AS_FOUND: Canary = Canary("SegmentLeftAsFound");
/// `clear` commits before the new segments are durable.
pub const CLEAR_BEFORE_SEGMENTS: Canary = Canary("ClearBeforeSegments");
/// Segments that `clear` unlinked stay alive, in the old generation, until no reader uses them.
pub const CLEARED_UNBURIED: Canary = Canary("ClearedUnburied");
/// A batch's entries are published without the mark that makes readers and recovery ask the batch.
pub const HALF_BATCH: Canary = Canary("HalfBatch");
/// A batch's word names its record before the record is durable.
pub const BATCH_BEFORE_RECORD: Canary = Canary("BatchBeforeRecord");
/// A batch is committed before its entries are durable.
pub const BATCH_BEFORE_ENTRIES: Canary = Canary("BatchBeforeEntries");
/// A batch's word is cleared before its entries without their marks are durable.
pub const BATCH_FORGOTTEN_EARLY: Canary = Canary("BatchForgottenEarly");
/// A batch's turn ends, so that another batch may use its word, before the word is cleared.
pub const BATCH_TURN_ENDED_EARLY: Canary = Canary("BatchTurnEndedEarly");
/// A batch's word is cleared before its entries are durable, in a batch that opening finishes.
pub const RECOVERED_BATCH_FORGOTTEN_EARLY: Canary = Canary("RecoveredBatchForgottenEarly");
/// A batch's word is not cleared, and opening carries the batch out again, whatever the entries hold by then.
pub const BATCH_REPLAYED: Canary = Canary("BatchReplayed");
/// A write whose caller is going to wait clears its mark immediately.
pub const DEFERRED_SETTLED: Canary = Canary("DeferredSettled");
/// The copy that a split makes of an entry that is not durable has no FRESH mark.
pub const SPLIT_SETTLES_FRESH: Canary = Canary("SplitSettlesFresh");
/// A batch for which no thread has waited clears its BATCH marks without setting FRESH.
pub const BATCH_SETTLED_EARLY: Canary = Canary("BatchSettledEarly");
/// A batch whose word was not accepted by a failed log is finished as if it had been.
pub const FAILED_BATCH_FINISHED: Canary = Canary("FailedBatchFinished");
