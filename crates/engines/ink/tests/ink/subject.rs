//! The engine on a crash medium.

use std::marker::PhantomData;

use engine::prelude::*;
use engine::{Clock, Expiry};
use engine_ink::{Ink, Options};
use heap::Parameters;
use pbtree::Error;
use pmem::Medium;
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{BackgroundWork, Contents, Crashed, Failure, Made, Over, expiring};

/// Nodes of seven pairs, so that few keys split them; `IN_PLACE` selects whether values overwrite others.
pub(crate) struct OfInk<const IN_PLACE: bool = false, M = Sim>(PhantomData<fn() -> M>);

const fn options(in_place: bool) -> Options {
    Options { order: 7, in_place }
}

pub(crate) const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 2, region_bytes: 1 << 20 };

/// Returns the value as tests compare it, or `None` if the read would wait for a lock.
fn try_get<M: Medium>(store: &Ink<M, HostDram>, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
    let found = store.tree().try_get(key, |value| {
        let expiry = value.expiry.map_or(Expiry::NEVER, Expiry::at_ms);
        (!store.clock().is_past(expiry)).then(|| match value.expiry {
            Some(at_ms) => expiring(value.bytes, at_ms),
            None => value.bytes.to_vec(),
        })
    });
    match found {
        Ok(found) => Ok(Some(found.flatten())),
        Err(Error::WouldWait) => Ok(None),
        Err(error) => Err(Failure::Other(error.to_string())),
    }
}

impl<const IN_PLACE: bool, M: Over> Made for OfInk<IN_PLACE, M> {
    type Engine = Ink<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        engine::relax_by_threads();
        Ok(Ink::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS, options(IN_PLACE))?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(Ink::open(M::open(on)?, HostDram, options(IN_PLACE))?.by_clock(clock))
    }

    fn try_get(store: &Crashed<Self>, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        try_get(&store.0, key)
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.tree().medium())
    }

    /// The places that a walk over the tree reaches are exactly those in use.
    fn needed_bytes(engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        engine.tree().check(&mut |_| {}).ok().map(|figures| figures.used_bytes)
    }
}
