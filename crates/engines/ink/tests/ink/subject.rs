//! The engine on a crash medium.

use engine::{Clock, Engine, Expiry};
use engine_ink::{Ink, Options};
use heap::Parameters;
use pbtree::Error;
use pmem::Medium;
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{Contents, Crashed, Failure, Made, expiring};

/// Nodes of seven pairs, so that few keys split them; `IN_PLACE` says whether values are written over others.
pub(crate) struct OfInk<const IN_PLACE: bool = false>;

pub(crate) type InkOnSim = Ink<Sim, HostDram>;

const fn options(in_place: bool) -> Options {
    Options { order: 7, in_place }
}

pub(crate) const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 2, region_bytes: 1 << 20 };

/// Who waits for a lock sleeps, as in any host, and so is seen to wait.
fn sleep(_asked: u32) {
    std::thread::sleep(std::time::Duration::from_micros(50));
}

/// The value as tests show it, or `None` where a lock would be waited for.
pub(crate) fn try_get<M: Medium>(store: &Ink<M, HostDram>, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
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

impl<const IN_PLACE: bool> Made for OfInk<IN_PLACE> {
    type Engine = InkOnSim;
    type Medium = Sim;

    fn format(on: Sim, clock: Clock) -> Result<InkOnSim, Failure> {
        pmem::relax_by(sleep);
        Ok(Ink::format(on, HostDram, &PARAMETERS, options(IN_PLACE))?.by_clock(clock))
    }

    fn open(on: Sim, clock: Clock) -> Result<InkOnSim, Failure> {
        Ok(Ink::open(on, HostDram, options(IN_PLACE))?.by_clock(clock))
    }

    fn try_get(store: &Crashed<Self>, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        try_get(&store.0, key)
    }

    /// What a walk over the tree reaches is all that is taken.
    fn needed_bytes(engine: &InkOnSim, _contents: &Contents) -> Option<u64> {
        engine.tree().check(&mut |_| {}).ok().map(|figures| figures.used_bytes)
    }
}
