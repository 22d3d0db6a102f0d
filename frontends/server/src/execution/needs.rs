//! The engine features that commands need.

use command_table::Needs;
use hikv::{Features, Order};

/// Returns the feature that an engine lacks, with the engine's name.
#[inline]
pub(super) fn missing(needs: Needs, features: &Features) -> Option<&'static str> {
    if needs == Needs::Any { None } else { lacked(needs, features) }
}

fn lacked(needs: Needs, features: &Features) -> Option<&'static str> {
    let (is_there, what) = match needs {
        Needs::Any => (true, ""),
        Needs::Order => (features.order != Order::No, "order"),
        Needs::Snapshots => (features.snapshots, "snapshots"),
        Needs::Batches => (features.batch, "batches"),
        Needs::Expiry if features.conditional => (features.expiry, "keys that expire"),
        Needs::Collections if features.order == Order::No => (false, "order"),
        Needs::Collections if features.conditional => (features.batch, "batches"),
        Needs::Conditions | Needs::Collections | Needs::Expiry => {
            (features.conditional, "writes that depend on what a key holds")
        }
    };
    (!is_there).then_some(what)
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
            distinct_versions: true,
        };
        let cases = [
            (Needs::Order, Features { order: Order::No, ..all }, "order"),
            (Needs::Snapshots, Features { snapshots: false, ..all }, "snapshots"),
            (Needs::Batches, Features { batch: false, ..all }, "batches"),
            (Needs::Conditions, Features { conditional: false, ..all }, "writes that depend on what a key holds"),
            (Needs::Expiry, Features { expiry: false, ..all }, "keys that expire"),
        ];
        for (needs, features, what) in cases {
            assert_eq!((missing(needs, &all), missing(needs, &features)), (None, Some(what)), "{needs:?}");
            assert_eq!(missing(Needs::Any, &features), None);
        }
    }
}
