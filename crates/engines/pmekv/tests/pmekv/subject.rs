//! The engine on a crash medium.

use std::marker::PhantomData;
use std::thread;

use engine::prelude::*;
use engine::{Check, Clock, Depth, Error};
use engine_pmekv::{Options, Pmekv};
use heap::Parameters;
use pmem::{Medium, MediumError};
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{BackgroundWork, Contents, Failure, Made, Op, Over, Shape};

/// Two lanes, segments of three entries and a log of eight, so that a few writes begin segments and make checkpoints.
pub(crate) struct OfPmekv<M = Sim>(PhantomData<fn() -> M>);

pub(crate) type OnSim = Pmekv<Sim, HostDram>;

pub(crate) const OPTIONS: Options = Options { log_entry_count_max: 8, segment_entry_count: 3 };

pub(crate) const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 2, region_bytes: 1 << 20 };

impl<M: Over> Made for OfPmekv<M> {
    type Engine = Pmekv<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        engine::relax_by_threads();
        Ok(Pmekv::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS, OPTIONS)?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(Pmekv::open(M::open(on)?, HostDram, OPTIONS)?.by_clock(clock))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.medium())
    }

    fn needed_bytes(engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        engine.needed_bytes().ok()
    }
}

pub(crate) fn shape(op_count: usize) -> Shape {
    Shape {
        swaps: true,
        scans: true,
        clears: true,
        reopens: true,
        multi_puts: true,
        multi_deletes: true,
        ..Shape::small(op_count)
    }
}

/// Returns a put of a short value that contains its number.
pub(crate) fn put(key: &str, number: u8) -> Op {
    Op::Put(key.into(), vec![number; 20])
}

/// Returns keys whose neighbours in key order are far apart, so that no part of the region becomes completely free.
pub(crate) fn scattered_key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. }))
}

/// Frees retired records, once no reader of this process can use them.
pub(crate) fn free_all<M: Medium>(store: &Pmekv<M, HostDram>) {
    while store.stats().garbage_count > 0 {
        store.run_idle_maintenance();
        thread::yield_now();
    }
}

/// Asserts that the store is consistent, and that all used space belongs to present data.
pub(crate) fn is_sound<M: Medium>(store: &Pmekv<M, HostDram>) {
    let mut check = Check::new(Depth::Deep);
    store.check(&mut check, &mut |damage| panic!("{damage:?}")).unwrap();
    assert_eq!(store.ordered().unwrap().check_order(&mut |damage| panic!("{damage:?}")).unwrap(), store.len().unwrap());
    free_all(store);
    assert_eq!(store.needed_bytes().unwrap(), store.stats().live_bytes);
}
