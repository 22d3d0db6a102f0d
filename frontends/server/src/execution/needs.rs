//! The engine features that commands need, and the tree of collections.

use hikv::{Features, Order};
use rdb::{Kind, Payload};
use resp::Request;

use command_table::{Entry, Needs};

/// Returns the feature that an engine lacks, with the engine's name.
#[inline]
pub(crate) fn missing(needs: Needs, features: &Features) -> Option<&'static str> {
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
        Needs::Conditions | Needs::ConditionsOrCollections | Needs::Collections | Needs::Expiry => {
            (features.conditional, "writes that depend on what a key holds")
        }
    };
    (!is_there).then_some(what)
}

/// Returns whether the request makes a collection if its key does not exist.
pub(crate) fn makes_collections(entry: Entry, request: &Request<'_>) -> bool {
    let is_restored = || Payload::announced_kind(request.argument(3)).is_some_and(|kind| kind != Kind::String);
    entry.command.makes_collections() || entry.command.restores() && is_restored()
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
