//! What a client listens to.

use std::collections::BTreeSet;

/// What a subscription names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    /// A channel of the shard, which is the whole server here. It has its own names, and no patterns.
    Shard,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::Shard];
}

/// The names that one client subscribes to.
#[derive(Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
    /// Channels of the shard.
    shards: BTreeSet<Vec<u8>>,
}

impl Subscriptions {
    pub(crate) fn of(&self, kind: Kind) -> &BTreeSet<Vec<u8>> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::Shard => &self.shards,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut BTreeSet<Vec<u8>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
    }

    /// How many channels and patterns, those of the shard among them.
    pub(crate) fn count(&self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.of(kind).len()).sum()
    }
}
