//! A client's subscriptions.

use std::collections::BTreeSet;

/// Kinds of subscriptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    /// A shard channel. The shard is the entire server. Shard channels have their own name space, and no patterns.
    Shard,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::Shard];
}

/// The channels and patterns that one client subscribes to.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
    /// Shard channels.
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

    pub(super) fn of_mut(&mut self, kind: Kind) -> &mut BTreeSet<Vec<u8>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
    }

    /// Returns the number of channels, patterns and shard channels.
    pub(crate) fn count(&self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.of(kind).len()).sum()
    }
}
