//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// Space below the high-water mark is handed out before the sweep has ended.
pub const PUT_BELOW_MARK: Canary = Canary("PutBelowMark");
/// A chunk is used before the high-water mark that covers it is durable.
pub const CHUNK_BEFORE_MARK: Canary = Canary("ChunkBeforeMark");
/// Grown space is used before the superblock that covers the space is durable.
pub const GROWTH_BEFORE_SUPERBLOCK: Canary = Canary("GrowthBeforeSuperblock");
/// Opening relies on the region's head as a killed process left it, without making the head durable.
pub const HEAD_LEFT_AS_FOUND: Canary = Canary("HeadLeftAsFound");
/// Both copies of the superblock are rewritten without an order between them.
pub const SUPERBLOCK_COPIES_TOGETHER: Canary = Canary("SuperblockCopiesTogether");
/// A feature flag that the region needs is not stored.
pub const FEATURE_NOT_STORED: Canary = Canary("FeatureNotStored");
/// Format clears its 'unfinished' mark before the superblock is durable.
pub const FORMAT_MARK_EARLY: Canary = Canary("FormatMarkEarly");
/// Index memory is linked before it is durable.
pub const STALE_SEGMENT_HEADER: Canary = Canary("StaleSegmentHeader");
/// The clean image stays named after the store has changed.
pub const CLEAN_FLAG_LEFT_SET: Canary = Canary("CleanFlagLeftSet");
/// The clean image is named before it is durable, and an older image at its place is trusted: numbers are not
/// compared.
pub const STALE_IMAGE: Canary = Canary("StaleImage");
/// The clean image is named before it is durable, and trusted without checking its checksum.
pub const TORN_IMAGE: Canary = Canary("TornImage");
/// A free run is punched before the header with its length is durable.
pub const PUNCH_BEFORE_HEADER: Canary = Canary("PunchBeforeHeader");
/// A chunk is made from a punched run without allocating the run's space again.
pub const PUNCHED_RUN_NOT_BACKED: Canary = Canary("PunchedRunNotBacked");
/// A chunk of slots is freed while some of its slots are in use.
pub const CHUNK_NOT_EMPTY: Canary = Canary("ChunkNotEmpty");
/// A chunk of segments is zeroed before the header of the joined free run under it is durable.
pub const ZEROES_BEFORE_RUN: Canary = Canary("ZeroesBeforeRun");
/// A free run is shortened before the header of the chunk at its end is durable.
pub const RUN_BEFORE_ITS_END: Canary = Canary("RunBeforeItsEnd");
/// A free run is shortened, to a chunk or to a run, before the header of the remainder is durable.
pub const RUN_BEFORE_ITS_REST: Canary = Canary("RunBeforeItsRest");
/// The snapshot epoch is not durable before items are stamped with it.
pub const EPOCH_NOT_FLUSHED: Canary = Canary("EpochNotFlushed");
