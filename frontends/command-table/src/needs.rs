//! The engine features that commands need.

/// The features that every request of a command needs. If only some requests need a feature, by their options or the
/// key's value, the engine itself refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Features of every engine: single keys, and walks.
    Any,
    /// Ordered scans.
    Order,
    /// Snapshots.
    Snapshots,
    /// Several writes in one step.
    Batches,
    /// Conditional writes.
    Conditions,
    /// The same; and collections, if the value that it restores is one.
    ConditionsOrCollections,
    /// Expiry, which needs conditional writes.
    Expiry,
    /// Collections, which need ordered scans, several writes in one step, and conditional writes.
    Collections,
}
