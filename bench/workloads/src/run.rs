//! A run: load the records, then measure one workload after the other on them.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::bounds::{Bounds, Nothing};
use crate::config::Config;
use crate::report::Row;
use crate::session::Session;
use crate::subject::{Error, Subject};

/// An event of a run in progress.
#[derive(Clone, Debug)]
pub enum Event {
    /// All records are in the store.
    Loaded {
        /// The number of records.
        records: u64,
        /// The time it took.
        elapsed: Duration,
    },
    /// A workload was measured.
    Measured(Box<Row>),
}

/// Loads the records of `config` into `subject`, which is empty, measures each workload, and removes the records that
/// the workloads added. Each figure is reported together with the loop's own time and the bound from `bounds`. The run
/// ends early when `report` requests it or when `stop` becomes true; a workload in progress is reported as far as it
/// was measured.
///
/// # Errors
/// Any error of the store, or if the store cannot do the operations of a workload. Wrong values are not an error here:
/// they are counted in the rows.
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
