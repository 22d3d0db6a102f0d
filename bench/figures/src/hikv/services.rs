//! The times of the operations within YCSB's mixes, on one thread: the service times of the model.

use std::time::Instant;

use super::work::{MIX_COUNT, Operation, once};
use crate::Error;
use crate::hikv::system::System;
use crate::records::Shape;

/// The names of the times of each mix, in the order of [`Sampled::times_ns`].
pub(super) const SERVICES: [[&str; KIND_COUNT]; MIX_COUNT] = [
    ["ycsb-a-read", "ycsb-a-write", "ycsb-a-change", "ycsb-a-scan", "ycsb-a-apply"],
    ["ycsb-b-read", "ycsb-b-write", "ycsb-b-change", "ycsb-b-scan", "ycsb-b-apply"],
    ["ycsb-c-read", "ycsb-c-write", "ycsb-c-change", "ycsb-c-scan", "ycsb-c-apply"],
    ["ycsb-d-read", "ycsb-d-write", "ycsb-d-change", "ycsb-d-scan", "ycsb-d-apply"],
    ["ycsb-e-read", "ycsb-e-write", "ycsb-e-change", "ycsb-e-scan", "ycsb-e-apply"],
    ["ycsb-f-read", "ycsb-f-write", "ycsb-f-change", "ycsb-f-scan", "ycsb-f-apply"],
];
/// The same names, without the mixes.
pub(super) const ALL: [&str; KIND_COUNT * MIX_COUNT] = {
    let (mut all, mut i) = ([""; KIND_COUNT * MIX_COUNT], 0);
    while i < all.len() {
        all[i] = SERVICES[i / KIND_COUNT][i % KIND_COUNT];
        i += 1;
    }
    all
};
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const CHANGE: usize = 2;
pub(super) const SCAN: usize = 3;
/// Applying the change of a write to the ordered tree, which HiKV does in the background.
pub(super) const APPLY: usize = 4;
const KIND_COUNT: usize = 5;
/// Reads of the clock whose mean time is subtracted.
const CLOCK_READ_COUNT: u32 = 10_000;

/// Sampled operations.
#[derive(Default)]
pub(super) struct Sampled {
    ns: [f64; KIND_COUNT],
    counts: [u64; KIND_COUNT],
    pub(super) wrong: u64,
}

impl Sampled {
    /// Carries out operations, and times each of them.
    pub(super) fn run(system: &dyn System, shape: Shape, operations: &[Operation]) -> Result<Sampled, Error> {
        let (mut sampled, mut value, clock_ns) = (Sampled::default(), shape.buffer(), clock_ns());
        for &operation in operations {
            let (applied, start) = (system.applied_ns(), Instant::now());
            sampled.wrong += u64::from(!once(system, shape, &mut value, operation)?);
            let applied = system.applied_ns() - applied;
            let kind = match operation {
                Operation::Get(_) => READ,
                Operation::Put(..) | Operation::Delete(_) => WRITE,
                Operation::Change(..) => CHANGE,
                Operation::Scan(..) => SCAN,
            };
            // Applying is timed within the write.
            let clocks = if applied > 0 { 2.0 } else { 1.0 };
            sampled.add(kind, start.elapsed().as_nanos() as f64 - applied as f64 - clocks * clock_ns);
            if matches!(kind, WRITE | CHANGE) {
                sampled.add(APPLY, (applied as f64 - clock_ns).max(0.0));
            }
        }
        Ok(sampled)
    }

    fn add(&mut self, kind: usize, ns: f64) {
        self.ns[kind] += ns;
        self.counts[kind] += 1;
    }

    /// Returns the number of operations and the mean time of each kind; `None` of those that did not occur.
    pub(super) fn times_ns(&self) -> [Option<(u64, f64)>; KIND_COUNT] {
        std::array::from_fn(|kind| {
            let count = self.counts[kind];
            (count > 0).then(|| (count, self.ns[kind] / count as f64))
        })
    }
}

fn clock_ns() -> f64 {
    let start = Instant::now();
    (0..CLOCK_READ_COUNT).for_each(|_| _ = std::hint::black_box(Instant::now()));
    start.elapsed().as_nanos() as f64 / f64::from(CLOCK_READ_COUNT)
}
