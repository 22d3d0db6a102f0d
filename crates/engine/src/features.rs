//! What an engine can do besides.

/// What an engine offers beyond points and walks. What it lacks is [`crate::Error::Unsupported`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// How it keeps keys in order.
    pub order: Order,
    /// Batches: several writes as one step.
    pub batch: bool,
    /// Snapshots.
    pub snapshots: bool,
    /// Keys that expire.
    pub expiry: bool,
    /// Writes that depend on what a key holds.
    pub conditional: bool,
    /// Gathering items, and giving space back.
    pub compaction: bool,
    /// Walks whose cursors are numbers that outlive a restart.
    pub numbered_walk: bool,
    /// Salvaging what is whole of a damaged store.
    pub salvage: bool,
}

/// How an engine keeps keys in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Not at all.
    No,
    /// Once it is asked for, beside its index of points.
    Asked,
    /// Always: its index is ordered.
    Native,
}

impl Features {
    /// Nothing beyond points and walks.
    pub const POINTS: Features = Features {
        order: Order::No,
        batch: false,
        snapshots: false,
        expiry: false,
        conditional: false,
        compaction: false,
        numbered_walk: false,
        salvage: false,
    };

    /// What is named, in the order of the fields, with whether the engine has it.
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
