//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// If a commit has several entries, the log has the later ones before the earlier ones.
pub const LOG_ORDER_UNLIKE_STORES: Canary = Canary("LogOrderUnlikeStores");
/// The checkpoint writes pages of memory, with later stores, before the log has those stores durably.
pub const LIVE_PAGE_IN_BASE: Canary = Canary("LivePageInBase");
/// Entries are written to the base before they are written to the log.
pub const BASE_BEFORE_LOG: Canary = Canary("BaseBeforeLog");
/// The checkpoint ignores pages that only the replayed log has.
pub const REPLAYED_PAGES_UNMARKED: Canary = Canary("ReplayedPagesUnmarked");
/// A log segment is reused before the base with its entries is durable.
pub const RECYCLED_BEFORE_BASE: Canary = Canary("RecycledBeforeBase");
/// Replay does not check numbers: the earlier content of a log segment is replayed.
pub const OLD_RECORDS_REPLAYED: Canary = Canary("OldRecordsReplayed");
/// Replay does not check checksums.
pub const TORN_RECORD_ACCEPTED: Canary = Canary("TornRecordAccepted");
/// A log that lacks a frame which a later frame calls durable is treated as ending there.
pub const CUT_TAKEN_FOR_END: Canary = Canary("CutTakenForEnd");
/// A full log segment is reported durable before it is synced.
pub const SEALED_CALLED_DURABLE: Canary = Canary("SealedCalledDurable");
/// Frames are written to a log segment before its header is durable.
pub const FRAMES_BEFORE_HEADER: Canary = Canary("FramesBeforeHeader");
/// A block of the base that is read after opening lacks the log's entries for it.
pub const LOADED_WITHOUT_REDO: Canary = Canary("LoadedWithoutRedo");
/// Opening appends behind the log's end without making the frames up to there durable.
pub const TAIL_NOT_REWRITTEN: Canary = Canary("TailNotRewritten");
/// Opening treats the base's pages with entries in the log as durable as they are.
pub const REPLAYED_PAGES_TRUSTED: Canary = Canary("ReplayedPagesTrusted");
/// A wait returns before the sync.
pub const WAIT_BEFORE_SYNC: Canary = Canary("WaitBeforeSync");
/// A failed sync is repeated, and its success is believed.
pub const SYNC_RETRIED: Canary = Canary("SyncRetried");
/// A log does not note where a word was published: a reader that finds the word treats it as durable.
pub const PUBLISHED_UNNOTED: Canary = Canary("PublishedUnnoted");
/// A page is evicted although the base lacks stores to it.
pub const EVICTED_WHILE_STORED: Canary = Canary("EvictedWhileStored");
/// A page is not read although only a part of it is overwritten.
pub const OVERWRITTEN_IN_PART: Canary = Canary("OverwrittenInPart");
/// A checkpoint reports a page clean before the base with it is synced.
pub const CLEAN_BEFORE_SYNC: Canary = Canary("CleanBeforeSync");
