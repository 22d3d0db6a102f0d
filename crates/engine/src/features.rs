//! The optional operations of engines.

/// The optional operations of an engine, in addition to point operations and walks. The others return
/// [`crate::Error::Unsupported`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// The kind of key order.
    pub order: Order,
    /// Batches: several writes in one step.
    pub batch: bool,
    /// Snapshots.
    pub snapshots: bool,
    /// Keys that expire.
    pub expiry: bool,
    /// Writes that depend on a key's value.
    pub conditional: bool,
    /// Compaction, which moves items together and returns space to the file system.
    pub compaction: bool,
    /// Walks whose cursors are numbers that stay valid after a restart.
    pub numbered_walk: bool,
    /// Salvaging the undamaged items of a damaged store.
    pub salvage: bool,
    /// Every write gives a key a version that it did not have since the last freed space was reused, also if it writes
    /// the same value again. Otherwise a version may return with its value.
    pub distinct_versions: bool,
}

/// The way in which an engine keeps keys in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Never.
    No,
    /// On request, in an ordered index in addition to the hash index.
    Asked,
    /// Always: the engine's index is ordered.
    Native,
}

impl Features {
    /// Only point operations and walks.
    pub const POINTS: Features = Features {
        order: Order::No,
        batch: false,
        snapshots: false,
        expiry: false,
        conditional: false,
        compaction: false,
        numbered_walk: false,
        salvage: false,
        distinct_versions: false,
    };

    /// Returns the names of the operations, in the order of the fields, with true if the engine has them.
    #[must_use]
    pub fn named(&self) -> [(&'static str, bool); 8] {
        [
            ("order", self.order != Order::No),
            ("batch", self.batch),
            ("snapshots", self.snapshots),
            ("expiry", self.expiry),
            ("conditional", self.conditional),
            ("compaction", self.compaction),
            ("numbered walk", self.numbered_walk),
            ("salvage", self.salvage),
        ]
    }
}
