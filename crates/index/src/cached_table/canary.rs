//! Broken variants of the rules that engines follow with their cached table
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// A write publishes before it hides the key's copy.
pub const COPY_HIDDEN_LATE: Canary = Canary("CopyHiddenLate");
/// A write shows the key's new copy before its item is durable.
pub const COPY_SHOWN_EARLY: Canary = Canary("CopyShownEarly");
/// An item that was written or found without waiting for the log is shown to other threads.
pub const COPY_SHOWN_DEFERRED: Canary = Canary("CopyShownDeferred");
/// The misses of an opened store's table are taken for absences.
pub const UNFILLED_TRUSTED: Canary = Canary("UnfilledTrusted");
/// A batch leaves the copies of its keys as they are.
pub const BATCH_HIDES_NOTHING: Canary = Canary("BatchHidesNothing");
/// `clear` leaves copies as they are.
pub const CLEAR_HIDES_NOTHING: Canary = Canary("ClearHidesNothing");
