//! The parameters of a run, and their limits.

use std::time::Duration;

use hikv::pool::Plan;

use crate::records::Records;
use crate::workload::Workload;

/// The maximum number of records of a run: greater numbers encode the kind and the thread of other records.
pub const RECORDS_MAX: u64 = 1 << 40;
/// The maximum number of threads of a run.
pub const THREADS_MAX: usize = 1 << 16;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The workloads, in the order of their measurement.
    pub workloads: Vec<Workload>,
    /// The records that are loaded before.
    pub records: Records,
    /// The maximum length of each pass.
    pub pass: Duration,
    /// Calling threads; at least one, at most [`THREADS_MAX`].
    pub threads: usize,
    /// Makes the calling threads also apply the changes that they queue, by this plan. Without a plan they only serve,
    /// and the subject's own threads apply changes.
    pub plan: Option<Plan>,
    /// Keeps the ordered index also for workloads that do not need it.
    pub keeps_order: bool,
    /// The seed of the random numbers; another seed gives other operations.
    pub seed: u64,
}
