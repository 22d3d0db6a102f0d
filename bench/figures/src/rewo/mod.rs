//! Rewo-Hash (Huang, Yan, Huang, DATE 2020), figures 8 to 10: by load factor, in tables of a fixed size, on one thread.
//! A load factor is the share of the slots that inserts can use.
//!
//! All systems are filled to a load factor together. Then, in turns, they read existing and absent keys, insert and
//! remove 1 % of the slots, replace values, and run YCSB A, B and C. An operation that a system refuses is counted
//! separately and is not an operation. The records of the operations are drawn before the clock starts, the same for
//! all systems.

mod claims;
mod system;
mod work;

use heap::layout::SEGMENT_BYTES;

use crate::machine::Machine;
use crate::paper::{Figure, Report};
use crate::{Error, Settings};

pub(crate) use claims::PAPER;
use system::Made;
use work::Bench;

/// The emulated cache holds this share of the table, unless the caller chooses: about as the 24 MB of the paper's
/// processor of its 32 GB.
const CACHED_SHARE: u64 = 1024;

/// The measured load factors.
const LOADS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];

fn run(
    figures: &[&'static Figure],
    settings: &Settings,
    machine: &Machine,
    report: &mut Report<'_>,
) -> Result<(), Error> {
    let slower_ns = settings.read_block_ns.unwrap_or((1.8 * machine.dependent_read_ns) as u64);
    let made = Made {
        dir: &settings.dir,
        segments: settings.segments,
        read_block_ns: slower_ns,
        persist_ns: settings.persist_ns,
        cache_bytes: settings.cache_bytes.unwrap_or(u64::from(settings.segments) * SEGMENT_BYTES / CACHED_SHARE),
        memory_read_ns: machine.dependent_read_ns as u64,
        is_counting: settings.is_counting,
    };
    let names: Vec<_> = figures.iter().flat_map(|figure| figure.systems).collect();
    let systems = system::ALL.into_iter().filter(|(name, _)| names.contains(&name) && settings.wants(name));
    let mut benches: Vec<Bench> =
        systems.map(|(name, make)| Ok(Bench::new(name, make(&made)?))).collect::<Result<_, Error>>()?;
    for load in LOADS {
        benches.iter_mut().try_for_each(|bench| bench.fill(load))?;
        for round in 0..settings.rounds {
            for workload in work::ALL {
                // The first system changes from round to round.
                let count = benches.len();
                for bench in (0..count).map(|i| (i + round) % count) {
                    let bench = &mut benches[bench];
                    let is_shown = |figure: &&&Figure| {
                        let has = |all: &[&str], one| all.contains(&one);
                        has(figure.workloads, workload.name())
                            && has(figure.systems, bench.name)
                            && figure.at.contains(&load)
                    };
                    if figures.iter().any(|figure| is_shown(&figure)) {
                        bench.turn(workload, load, round, settings.operations)?.into_iter().for_each(&mut *report);
                    }
                }
            }
        }
    }
    if settings.is_counting {
        for bench in &mut benches {
            report(bench.fill_up()?);
        }
    }
    Ok(())
}
