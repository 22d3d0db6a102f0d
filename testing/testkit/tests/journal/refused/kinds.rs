//! The engines, and the creation of their stores on a log that can be stopped.

use engine::Engine;
use engine_hikv::HiKv;
use engine_ink::Ink;
use engine_pmekv::Pmekv;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::HostDram;

use super::stop::Stoppable;

/// A region with space for a few splits.
const PARAMETERS: Parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: 4 << 20 };

/// Few pairs per node, so that few keys split one.
const INK: engine_ink::Options = engine_ink::Options { order: 7, in_place: false };

/// Few entries per segment, so that few writes start a new segment.
const PMEKV: engine_pmekv::Options = engine_pmekv::Options { log_entry_count_max: 64, segment_entry_count: 8 };

/// An engine.
pub(super) trait Kind: 'static {
    /// The engine's store.
    type Store: Engine + Sized;

    fn format(on: Stoppable) -> Self::Store;

    fn open(on: Stoppable) -> Self::Store;

    fn medium(store: &Self::Store) -> &Stoppable;
}

pub(super) struct OfHiKv;

pub(super) struct OfRewoHash;

pub(super) struct OfInk;

pub(super) struct OfPmekv;

impl Kind for OfHiKv {
    type Store = HiKv<Stoppable, HostDram>;

    fn format(on: Stoppable) -> Self::Store {
        HiKv::format(on, HostDram, &PARAMETERS).unwrap()
    }

    fn open(on: Stoppable) -> Self::Store {
        HiKv::open(on, HostDram).unwrap()
    }

    fn medium(store: &Self::Store) -> &Stoppable {
        store.medium()
    }
}

impl Kind for OfRewoHash {
    type Store = RewoHash<Stoppable, HostDram>;

    fn format(on: Stoppable) -> Self::Store {
        RewoHash::format(on, HostDram, &PARAMETERS).unwrap()
    }

    fn open(on: Stoppable) -> Self::Store {
        RewoHash::open(on, HostDram).unwrap()
    }

    fn medium(store: &Self::Store) -> &Stoppable {
        store.medium()
    }
}

impl Kind for OfInk {
    type Store = Ink<Stoppable, HostDram>;

    fn format(on: Stoppable) -> Self::Store {
        Ink::format(on, HostDram, &PARAMETERS, INK).unwrap()
    }

    fn open(on: Stoppable) -> Self::Store {
        Ink::open(on, HostDram, INK).unwrap()
    }

    fn medium(store: &Self::Store) -> &Stoppable {
        store.tree().medium()
    }
}

impl Kind for OfPmekv {
    type Store = Pmekv<Stoppable, HostDram>;

    fn format(on: Stoppable) -> Self::Store {
        Pmekv::format(on, HostDram, &PARAMETERS, PMEKV).unwrap()
    }

    fn open(on: Stoppable) -> Self::Store {
        Pmekv::open(on, HostDram, PMEKV).unwrap()
    }

    fn medium(store: &Self::Store) -> &Stoppable {
        store.medium()
    }
}
