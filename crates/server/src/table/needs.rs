//! The engine features that commands need.

use hikv::{Features, Order};

/// The features that every request of a command needs. If only some requests need a feature, by their options or the
/// key's value, the engine itself refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    /// Features of every engine: single keys, and walks.
    Any,
    Order,
    Snapshots,
    /// Several writes in one step.
    Batches,
    /// Conditional writes.
    Conditions,
    /// Expiry, which needs conditional writes.
    Expiry,
}

impl Needs {
    /// Returns the feature that an engine lacks, with the engine's name.
    #[inline]
    pub(crate) fn missing(self, features: &Features) -> Option<&'static str> {
        if self == Needs::Any { None } else { self.looked_up(features) }
    }

    fn looked_up(self, features: &Features) -> Option<&'static str> {
        let (is_there, what) = match self {
            Needs::Any => (true, ""),
            Needs::Order => (features.order != Order::No, "order"),
            Needs::Snapshots => (features.snapshots, "snapshots"),
            Needs::Batches => (features.batch, "batches"),
            Needs::Expiry if features.conditional => (features.expiry, "keys that expire"),
            Needs::Conditions | Needs::Expiry => (features.conditional, "writes that depend on what a key holds"),
        };
        (!is_there).then_some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_need_is_another_feature() {
        let all = Features {
            order: Order::Asked,
            batch: true,
            snapshots: true,
            expiry: true,
            conditional: true,
            compaction: true,
            numbered_walk: true,
            salvage: true,
        };
        let cases = [
            (Needs::Order, Features { order: Order::No, ..all }, "order"),
            (Needs::Snapshots, Features { snapshots: false, ..all }, "snapshots"),
            (Needs::Batches, Features { batch: false, ..all }, "batches"),
            (Needs::Conditions, Features { conditional: false, ..all }, "writes that depend on what a key holds"),
            (Needs::Expiry, Features { expiry: false, ..all }, "keys that expire"),
        ];
        for (needs, features, what) in cases {
            assert_eq!((needs.missing(&all), needs.missing(&features)), (None, Some(what)), "{needs:?}");
            assert_eq!(Needs::Any.missing(&features), None);
        }
    }
}
