//! Figure 13: the bytes of DRAM and of persistent memory for each pair, by the length of values.

use super::SHAPE;
use super::system::{self, Place, Slowness};
use super::work::Bench;
use crate::paper::Report;
use crate::point::Point;
use crate::records::{KEY_BYTES, Shape};
use crate::{Error, Settings};

/// The lengths of values.
pub(super) const VALUES: [f64; 5] = [64.0, 128.0, 256.0, 512.0, 1024.0];
pub(super) const SYSTEMS: &[&str] = &["hikv", "nvstore", "fptree"];

pub(super) fn run(settings: &Settings, report: &mut Report<'_>) -> Result<(), Error> {
    for value_bytes in VALUES {
        // Equal bytes for each length.
        let pair_count = (settings.pairs * SHAPE.value_bytes() as u64 / value_bytes as u64).min(settings.pairs);
        for (name, make) in system::ALL.iter().filter(|(name, _)| SYSTEMS.contains(name) && settings.wants(name)) {
            let home = tempfile::tempdir_in(&settings.dir)?;
            let (slowness, is_alone) = (Slowness::default(), settings.is_counting);
            let place = Place { dir: home.path(), slowness, pair_count, is_new: true, is_alone };
            let bench = Bench::of(name, make(&place)?, Shape::new(KEY_BYTES, value_bytes as usize), pair_count);
            bench.load()?;
            for (workload, bytes) in ["dram", "nvm"].into_iter().zip(bench.system.used_bytes()?) {
                let ns = bytes as f64 / pair_count as f64;
                report(Point { ns, operations: pair_count, ..Point::of(workload, name, value_bytes, 0) });
            }
        }
    }
    Ok(())
}
