//! Broken twins of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// An undo log's run is flushed, but nothing orders it before the change.
pub const LOG_NOT_ORDERED: Canary = Canary("LogNotOrdered");
/// A change's number is raised before the change is durable.
pub const NUMBER_BEFORE_CHANGE: Canary = Canary("NumberBeforeChange");
/// Recovery restores runs whose checksum does not fit.
pub const RUN_CHECKSUM_IGNORED: Canary = Canary("RunChecksumIgnored");
/// Recovery does not compare numbers, and takes back what stands.
pub const OLD_RUN_REPLAYED: Canary = Canary("OldRunReplayed");
/// Recovery raises a lane's number before it restores.
pub const NUMBER_BEFORE_RESTORE: Canary = Canary("NumberBeforeRestore");
/// Recovery orders nothing between what it restores and the number that makes the run void.
pub const RESTORE_NOT_ORDERED: Canary = Canary("RestoreNotOrdered");
/// Opening relies on a word that a killed process has changed by itself, and does not make it durable.
pub const WORD_LEFT_AS_FOUND: Canary = Canary("WordLeftAsFound");
/// Recovery of a reader leaves changes as they are that do not stand.
pub const UNDO_HIDDEN_FROM_READERS: Canary = Canary("UndoHiddenFromReaders");
/// A lane gets a log with whatever lies there, which an earlier use of the space may have left.
pub const LOG_LEFT_AS_FOUND: Canary = Canary("LogLeftAsFound");
/// Two lanes' runs have the same word.
pub const WORD_IN_TWO_LANES: Canary = Canary("WordInTwoLanes");
