//! Broken variants of this table's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// A slot is written, but not flushed before its bit.
pub const SLOT_NOT_FLUSHED: Canary = Canary("SlotNotFlushed");
/// A slot's bit is set before the slot is durable.
pub const BIT_BEFORE_SLOT: Canary = Canary("BitBeforeSlot");
/// An update uses the emptier of the key's buckets, and so needs two words.
pub const UPDATE_ACROSS_BUCKETS: Canary = Canary("UpdateAcrossBuckets");
/// A slot is reused without raising the counter that readers check.
pub const REFILL_NOT_COUNTED: Canary = Canary("RefillNotCounted");
/// A reader returns an item that may not be durable.
pub const BLOCK_READ_UNSETTLED: Canary = Canary("BlockReadUnsettled");
/// A reader reports an absence that may not be durable.
pub const BLOCK_ABSENT_UNSETTLED: Canary = Canary("BlockAbsentUnsettled");
/// A lock bit that a crash left is taken for a held lock: the slot's item counts as absent.
pub const LOCK_BIT_BELIEVED: Canary = Canary("LockBitBelieved");
/// A split forgets which slots were not durable.
pub const LOCK_BITS_LOST_BY_SPLIT: Canary = Canary("LockBitsLostBySplit");
/// A split is committed before its segments are durable.
pub const BLOCK_SPLIT_BEFORE_SEGMENTS: Canary = Canary("BlockSplitBeforeSegments");
/// A writer relies on a segment as a killed process left it, and does not make it durable.
pub const SEGMENT_LEFT_AS_FOUND: Canary = Canary("BlockSegmentLeftAsFound");
/// A batch's word names its record before the record is durable.
pub const BLOCK_BATCH_BEFORE_RECORD: Canary = Canary("BlockBatchBeforeRecord");
/// A batch is carried out in place before its word is durable.
pub const CARRIED_OUT_BEFORE_WORD: Canary = Canary("CarriedOutBeforeWord");
/// A batch's word is cleared before its buckets are durable.
pub const BLOCK_BATCH_FORGOTTEN_EARLY: Canary = Canary("BlockBatchForgottenEarly");
/// A batch's turn ends, so that another batch may use the word, before the word is cleared.
pub const BLOCK_BATCH_TURN_ENDED_EARLY: Canary = Canary("BlockBatchTurnEndedEarly");
/// A batch is carried out although a failed log did not accept its word.
pub const REFUSED_BATCH_CARRIED_OUT: Canary = Canary("RefusedBatchCarriedOut");
/// Readers do not ask the batch that is being carried out.
pub const HALF_BATCH_SEEN: Canary = Canary("HalfBatchSeen");
/// A move empties the old slot before it writes the new one.
pub const DELETE_BEFORE_INSERT: Canary = Canary("DeleteBeforeInsert");
/// The slot that a move emptied is not ordered after the slot that it filled.
pub const DELETE_NOT_ORDERED: Canary = Canary("DeleteNotOrdered");
/// A move forgets that its item is not durable.
pub const LOCK_BIT_LOST_BY_MOVE: Canary = Canary("LockBitLostByMove");
/// A writer leaves the second copy of its key that an interrupted move left.
pub const DUPLICATE_KEPT: Canary = Canary("DuplicateKept");
/// A move ahead of inserts empties a slot without raising the counter of its bucket.
pub const MOVE_NOT_COUNTED: Canary = Canary("MoveNotCounted");
/// A reader does not check whether its first bucket changed.
pub const FIRST_COUNTER_IGNORED: Canary = Canary("FirstCounterIgnored");
/// A reader does not check whether its second bucket changed.
pub const SECOND_COUNTER_IGNORED: Canary = Canary("SecondCounterIgnored");
