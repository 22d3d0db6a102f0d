//! Broken twins of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// Of several entries of one commit the log has the later before the earlier.
pub const LOG_ORDER_UNLIKE_STORES: Canary = Canary("LogOrderUnlikeStores");
/// The checkpoint writes pages of memory, with whatever was stored since, before the log has that durably.
pub const LIVE_PAGE_IN_BASE: Canary = Canary("LivePageInBase");
/// What is appended goes to the base before it goes to the log.
pub const BASE_BEFORE_LOG: Canary = Canary("BaseBeforeLog");
/// The checkpoint knows nothing of pages that only the replayed log has.
pub const REPLAYED_PAGES_UNMARKED: Canary = Canary("ReplayedPagesUnmarked");
/// A log segment is used again before the base that took it in is durable.
pub const RECYCLED_BEFORE_BASE: Canary = Canary("RecycledBeforeBase");
/// Replay does not look at numbers: what a log segment held before its present use is replayed.
pub const OLD_RECORDS_REPLAYED: Canary = Canary("OldRecordsReplayed");
/// Replay does not look at checksums.
pub const TORN_RECORD_ACCEPTED: Canary = Canary("TornRecordAccepted");
/// A log that lacks a frame which a later one calls durable ends there.
pub const CUT_TAKEN_FOR_END: Canary = Canary("CutTakenForEnd");
/// A log segment that is full is called durable before it is synced.
pub const SEALED_CALLED_DURABLE: Canary = Canary("SealedCalledDurable");
/// Frames are written to a log segment before its header is durable.
pub const FRAMES_BEFORE_HEADER: Canary = Canary("FramesBeforeHeader");
/// A block of the base that is read after opening lacks what the log has for it.
pub const LOADED_WITHOUT_REDO: Canary = Canary("LoadedWithoutRedo");
/// Opening goes on behind the log's end without making durable what it has read up to there.
pub const TAIL_NOT_REWRITTEN: Canary = Canary("TailNotRewritten");
/// Opening takes the base's pages that the log has entries of for durable as it finds them.
pub const REPLAYED_PAGES_TRUSTED: Canary = Canary("ReplayedPagesTrusted");
/// A wait returns before the sync.
pub const WAIT_BEFORE_SYNC: Canary = Canary("WaitBeforeSync");
/// A failed sync is tried again, and believed.
pub const SYNC_RETRIED: Canary = Canary("SyncRetried");
/// A log does not note where a word was published: a reader that meets it is told that it is durable.
pub const PUBLISHED_UNNOTED: Canary = Canary("PublishedUnnoted");
