//! Broken twins: deliberate faults that the crash explorer must catch.
//!
//! A checker that has never caught anything proves nothing. Each canary removes one step of one protocol; a test runs
//! the same script on the broken twin and demands that the explorer objects. Protocol code asks the medium
//! ([`crate::Medium::breaks`]), whose answer is the constant `false` everywhere but on the crash medium, so that the
//! twins vanish from every shipped build (`docs/decisions/0005-canaries-are-asked-of-the-medium.md`).

/// A step that a broken twin leaves out or gets wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Canary {
    /// The item is written but never flushed.
    ItemNotFlushed,
    /// The item is flushed, but nothing orders it before its entry.
    ItemNotOrdered,
    /// The entry is published before the item is written.
    EntryBeforeItem,
    /// The position is published in one line write without its signature, which follows later.
    TornPair,
    /// Delete stores a plain zero, unflushed, and hands the item out again.
    PlainZeroDelete,
    /// A reader returns what it saw without settling the mark.
    UnsettledRead,
    /// The replaced item is free before the new entry is durable.
    FreeBeforeUnlink,
    /// An entry outside its home line is published before the home line's overflow bit is durable.
    OverflowBitLate,
    /// A split is committed before the new segments are durable.
    SplitBeforeSegments,
    /// Recovery leaves the old segment of a committed split alive.
    GhostSegment,
    /// The split record is cleared before the states of the segments are durable.
    RecordClearedEarly,
    /// A split leads writers to its halves before it leads readers there.
    WritersLedFirst,
    /// A reader that finds nothing says so without a fence.
    MissNotFenced,
    /// A batch sets the overflow bits of the entries that it chooses at once, and leaves them unordered if it is given up.
    WaysMarkedEarly,
    /// A write that finds another one under way leaves it to that one's commit to make it durable, and does not wait.
    SecondNotWaited,
    /// The sweep does not see what a split moved while it ran.
    SweepMissesSplit,
    /// Space below the high-water mark is handed out before the sweep has ended.
    PutBelowMark,
    /// A chunk is used before the high-water mark that covers it is durable.
    ChunkBeforeMark,
    /// Grown space is used before the superblock that covers it is durable.
    GrowthBeforeSuperblock,
    /// Opening relies on what a killed process left of the region's head, and does not make it durable.
    HeadLeftAsFound,
    /// A writer relies on what a killed process left of a segment, and does not make it durable.
    SegmentLeftAsFound,
    /// Both copies of the superblock are rewritten without an order between them.
    SuperblockCopiesTogether,
    /// A feature flag that the region needs is not stored.
    FeatureNotStored,
    /// Format clears its 'unfinished' mark before the superblock is durable.
    FormatMarkEarly,
    /// `clear` commits before the new segments are durable.
    ClearBeforeSegments,
    /// What `clear` has unlinked stays alive, as another generation's, until readers let go of it.
    ClearedUnburied,
    /// Index memory is linked without having been made durable.
    StaleSegmentHeader,
    /// The clean image stays named when the store is changed.
    CleanFlagLeftSet,
    /// The clean image is named before it is durable, and an older one at its place is trusted: numbers are not compared.
    StaleImage,
    /// The clean image is named before it is durable, and trusted without a look at its checksum.
    TornImage,
    /// Several puts take their marks away before the commit that they share.
    SettledBeforeCommit,
    /// A conditional write takes place although the key's entry has changed since it was read.
    CasIgnoresChange,
    /// The reaper deletes a key that was renewed after it had seen it expired.
    ReapsRenewed,
    /// A batch's entries are published without the mark that makes readers and recovery ask the batch.
    HalfBatch,
    /// A batch's word names its record before that is durable.
    BatchBeforeRecord,
    /// A batch is committed before its entries are durable.
    BatchBeforeEntries,
    /// A batch's word is cleared before its entries without their marks are durable.
    BatchForgottenEarly,
    /// The same when a batch is finished by opening.
    RecoveredBatchForgottenEarly,
    /// A batch's word is not cleared, and opening carries it out again, whatever the entries hold by then.
    BatchReplayed,
    /// What is written while the ordered index is built is not noted.
    ChangeMissesDelta,
    /// A replaced item is free before the ordered index has let go of it.
    RetireBeforeTree,
    /// A free run is punched before the header that says how long it is is durable.
    PunchBeforeHeader,
    /// A chunk is made of a punched run whose space was not taken again.
    PunchedRunNotBacked,
    /// A moved item's entry is switched, or made, without a look at what it names by now.
    MoveUnchecked,
    /// A moved item's old place is free before its entry is switched.
    MoveFreesEarly,
    /// The snapshot epoch is not durable before items are stamped with it.
    EpochNotFlushed,
    /// A writer does not look again, under the bucket's lock, whether a snapshot was taken since it stamped its item.
    StaleStamp,
    /// A snapshot does not wait for the writers that were at it when it was taken.
    SnapshotBeforeWriters,
    /// A replaced item is kept for snapshots only after the one that replaces it is visible.
    KeptAfterPublish,
    /// Of several entries of one commit the log has the later before the earlier.
    LogOrderUnlikeStores,
    /// The checkpoint writes pages of memory, with whatever was stored since, before the log has that durably.
    LivePageInBase,
    /// What is appended goes to the base before it goes to the log.
    BaseBeforeLog,
    /// The checkpoint knows nothing of pages that only the replayed log has.
    ReplayedPagesUnmarked,
    /// A log segment is used again before the base that took it in is durable.
    RecycledBeforeBase,
    /// Replay does not look at numbers: what a log segment held before its present use is replayed.
    OldRecordsReplayed,
    /// Replay does not look at checksums.
    TornRecordAccepted,
    /// A log that lacks a frame which a later one calls durable ends there.
    CutTakenForEnd,
    /// A log segment that is full is called durable before it is synced.
    SealedCalledDurable,
    /// Frames are written to a log segment before its header is durable.
    FramesBeforeHeader,
    /// A block of the base that is read after opening lacks what the log has for it.
    LoadedWithoutRedo,
    /// Opening goes on behind the log's end without making durable what it has read up to there.
    TailNotRewritten,
    /// Opening takes the base's pages that the log has entries of for durable as it finds them.
    ReplayedPagesTrusted,
    /// A wait returns before the sync.
    WaitBeforeSync,
    /// A failed sync is tried again, and believed.
    SyncRetried,
    /// A write that its caller is going to wait for takes its mark away at once.
    DeferredSettled,
    /// A scan that does not wait itself leaves nothing to be waited for, whatever it met.
    DeferredScanTold,
    /// A log does not note where a word was published: who meets it is told that it is durable.
    PublishedUnnoted,
    /// The copy that a split makes of an entry which is not durable says that it is.
    SplitSettlesFresh,
    /// A batch that nobody has waited for takes its marks away, and none takes their place.
    BatchSettledEarly,
    /// The image that an undo word names is flushed, but nothing orders it before the word.
    ImageNotOrdered,
    /// An undo log's run is flushed, but nothing orders it before the change.
    LogNotOrdered,
    /// A change's number is raised before the change is durable.
    NumberBeforeChange,
    /// Recovery restores runs whose checksum does not fit.
    RunChecksumIgnored,
    /// Recovery does not compare numbers, and takes back what stands.
    OldRunReplayed,
    /// Recovery raises a lane's number before it restores.
    NumberBeforeRestore,
    /// Recovery orders nothing between what it restores and the number that makes the run void.
    RestoreNotOrdered,
    /// Opening relies on a word that a killed process has changed by itself, and does not make it durable.
    WordLeftAsFound,
    /// Two lanes' runs have the same word.
    WordInTwoLanes,
    /// A node's lock is let go of before the change under it is committed.
    UnlockedBeforeCommit,
    /// A deleted key's word is not flushed.
    DeleteNotFlushed,
    /// A leaf's count is raised before the pair behind its last is durable.
    CountBeforePair,
    /// A value is written over another one that is in no run.
    InPlaceNotLogged,
    /// A node is linked that was never flushed.
    NodeNotFlushed,
    /// A split's run does not have the parent's words.
    ParentOutsideRun,
    /// The root's word names a node that was never flushed.
    RootBeforeNode,
    /// A separator is a leaf's own key, which is freed with it.
    KeyUnderSeparator,
    /// What says which stamps were given is not flushed.
    StampBlockNotFlushed,
    /// A batch's run has the words of half of its keys.
    BatchHalfLogged,
}
