//! Broken variants of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// The run of an undo log is flushed, but not ordered before the change.
pub const LOG_NOT_ORDERED: Canary = Canary("LogNotOrdered");
/// The number of a change is raised before the change is durable.
pub const NUMBER_BEFORE_CHANGE: Canary = Canary("NumberBeforeChange");
/// Recovery restores runs whose checksum does not match.
pub const RUN_CHECKSUM_IGNORED: Canary = Canary("RunChecksumIgnored");
/// Recovery does not compare numbers, and undoes final changes.
pub const OLD_RUN_REPLAYED: Canary = Canary("OldRunReplayed");
/// Recovery raises a lane's number before it restores.
pub const NUMBER_BEFORE_RESTORE: Canary = Canary("NumberBeforeRestore");
/// Recovery does not order the restored words before the number that makes the run void.
pub const RESTORE_NOT_ORDERED: Canary = Canary("RestoreNotOrdered");
/// Opening relies on a single word that a killed process has changed, and does not make it durable.
pub const WORD_LEFT_AS_FOUND: Canary = Canary("WordLeftAsFound");
/// Recovery for a reader does not hide changes that are not final.
pub const UNDO_HIDDEN_FROM_READERS: Canary = Canary("UndoHiddenFromReaders");
/// A lane gets a log without voiding its space, which may hold bytes of an earlier use.
pub const LOG_LEFT_AS_FOUND: Canary = Canary("LogLeftAsFound");
/// The runs of two lanes have the same word.
pub const WORD_IN_TWO_LANES: Canary = Canary("WordInTwoLanes");
