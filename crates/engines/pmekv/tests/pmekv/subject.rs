//! The engine on a crash medium.

use engine::Clock;
use engine_pmekv::{Options, Pmekv};
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{Contents, Failure, Made, Op, Shape};

/// Two lanes, segments of three entries and a log of eight, so that few writes begin segments and make checkpoints.
pub(crate) struct OfPmekv;

pub(crate) type OnSim = Pmekv<Sim, HostDram>;

pub(crate) const OPTIONS: Options = Options { log_entry_count_max: 8, segment_entry_count: 3 };

pub(crate) const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 2, region_bytes: 1 << 20 };

/// Who waits for a lock sleeps, as in any host, and so is seen to wait.
fn sleep(_asked: u32) {
    std::thread::sleep(std::time::Duration::from_micros(50));
}

impl Made for OfPmekv {
    type Engine = OnSim;
    type Medium = Sim;

    fn format(on: Sim, clock: Clock) -> Result<OnSim, Failure> {
        pmem::relax_by(sleep);
        Ok(Pmekv::format(on, HostDram, &PARAMETERS, OPTIONS)?.by_clock(clock))
    }

    fn open(on: Sim, clock: Clock) -> Result<OnSim, Failure> {
        Ok(Pmekv::open(on, HostDram, OPTIONS)?.by_clock(clock))
    }

    fn needed_bytes(engine: &OnSim, _contents: &Contents) -> Option<u64> {
        engine.needed_bytes().ok()
    }
}

pub(crate) fn shape(op_count: usize) -> Shape {
    Shape { swaps: true, scans: true, clears: true, reopens: true, multi_puts: true, ..Shape::small(op_count) }
}

/// A put of a short value that tells its number.
pub(crate) fn put(key: &str, number: u8) -> Op {
    Op::Put(key.into(), vec![number; 20])
}
