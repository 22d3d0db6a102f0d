//! The four engines on crashable memory, each so small that few keys split its index.

use std::marker::PhantomData;

use engine::Clock;
use engine_hikv::HiKv;
use engine_ink::Ink;
use engine_pmekv::Pmekv;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{BackgroundWork, Failure, Made, Over};

/// Makes the stores of an engine on a medium.
pub(crate) struct Of<E, M = Sim>(PhantomData<fn() -> (E, M)>);

pub(crate) struct OfHiKv;
pub(crate) struct OfRewoHash;
pub(crate) struct OfInk;
pub(crate) struct OfPmekv;

/// Space for the head, one chunk of segments, and a few chunks of items.
pub(crate) const REGION_BYTES: u64 = (2 << 20) + (512 << 10);
const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
const INK: engine_ink::Options = engine_ink::Options { order: 7, in_place: false };
const PMEKV: engine_pmekv::Options = engine_pmekv::Options { log_entry_count_max: 64, segment_entry_count: 16 };

impl<M: Over> Made for Of<OfHiKv, M> {
    type Engine = HiKv<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(HiKv::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS)?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(HiKv::open(M::open(on)?, HostDram)?.by_clock(clock))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.medium())
    }
}

impl<M: Over> Made for Of<OfRewoHash, M> {
    type Engine = RewoHash<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(RewoHash::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS)?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(RewoHash::open(M::open(on)?, HostDram)?.by_clock(clock))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.medium())
    }
}

impl<M: Over> Made for Of<OfInk, M> {
    type Engine = Ink<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        engine::relax_by_threads();
        Ok(Ink::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS, INK)?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(Ink::open(M::open(on)?, HostDram, INK)?.by_clock(clock))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.tree().medium())
    }
}

impl<M: Over> Made for Of<OfPmekv, M> {
    type Engine = Pmekv<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        engine::relax_by_threads();
        Ok(Pmekv::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS, PMEKV)?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(Pmekv::open(M::open(on)?, HostDram, PMEKV)?.by_clock(clock))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.medium())
    }
}
