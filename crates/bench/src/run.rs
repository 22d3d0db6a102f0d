//! A run: load the records, then measure one workload after the other on them.

use std::ops::ControlFlow;
use std::time::Duration;

use hikv::pool::Plan;

use crate::bounds::{Bounds, Nothing};
use crate::records::Records;
use crate::report::Row;
use crate::session::Session;
use crate::subject::{Error, Subject};
use crate::workload::Workload;

/// The most records of a run: numbers above tell whose and of what kind a record is.
pub const RECORDS_MAX: u64 = 1 << 40;
/// The most threads of a run.
pub const THREADS_MAX: usize = 1 << 16;

/// What a run measures.
#[derive(Clone, Debug)]
pub struct Config {
    /// Measured in this order.
    pub workloads: Vec<Workload>,
    /// Loaded before.
    pub records: Records,
    /// How long each pass lasts at most.
    pub pass: Duration,
    /// Calling threads; at least one, at most [`THREADS_MAX`].
    pub threads: usize,
    /// Has the calling threads apply what they leave in queues as well, by this plan. Without a plan the threads only serve, and the
    /// subject has threads of its own for that.
    pub plan: Option<Plan>,
    /// Keep order for workloads that need none, too.
    pub keeps_order: bool,
    /// What random numbers begin with: another one, other operations.
    pub seed: u64,
}

/// What a run has to say while it goes on.
#[derive(Clone, Debug)]
pub enum Event {
    /// All records are in the store.
    Loaded {
        /// How many there are.
        records: u64,
        /// How long it took.
        elapsed: Duration,
    },
    /// A workload was measured.
    Measured(Box<Row>),
}

/// Loads the records of `config` into `subject`, which is empty, measures each workload, and removes what the
/// workloads added. Beside each figure stand what the same loop takes without a store, and what `bounds` tells. The run ends early when
/// `report` says so, or when `stop` becomes true: of a workload that was under way what was measured is reported.
///
/// # Errors
/// As the store says, or if it cannot do what a workload needs. Wrong values are no error here: they are counted in the rows.
pub fn run<S: Subject>(
    subject: &S,
    config: &Config,
    bounds: &Bounds,
    stop: &(dyn Fn() -> bool + Sync),
    mut report: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<(), Error> {
    let session = Session::new(subject, config, stop)?;
    let (records, elapsed) = session.load()?;
    if stop() {
        return Ok(());
    }
    let mut flow = report(Event::Loaded { records, elapsed });
    for &workload in &config.workloads {
        if flow.is_break() || stop() {
            break;
        }
        if let Some(row) = session.measure(workload, &mut || {})? {
            let own_ns = if stop() { None } else { Nothing::new(config.records).own_ns(workload, config)? };
            flow = report(Event::Measured(Box::new(row.beside(own_ns, bounds.of(workload)))));
        }
    }
    Ok(())
}
