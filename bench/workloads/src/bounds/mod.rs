//! Lower bounds of the machine, measured in the same run as a store. Figures differ between machines; ratios to these
//! bounds hardly do.
//!
//! Two subjects replace the store in the same loops. [`Nothing`] does nothing: the result is the loop's own time.
//! [`Bare`] does only the work that no store can leave out, with the same flushes and fences: one line of an index, one
//! item, and no comparison, lock or allocation.

mod bare;
mod in_order;
mod nothing;

use std::path::Path;
use std::time::Duration;

use pmem::Latency;

use crate::config::Config;
use crate::session::Session;
use crate::subject::{Error, Subject};
use crate::workload::Workload;

use self::bare::Bare;
pub(crate) use self::nothing::Nothing;

/// Long compared with a time slice of the scheduler, short compared with a pass.
const PASS_MAX: Duration = Duration::from_millis(250);

/// The workloads that are measured, in this order; the one that deletes is last.
const MEASURED: [Workload; 7] = [
    Workload::Get,
    Workload::Miss,
    Workload::MultiGet,
    Workload::Scan,
    Workload::Update,
    Workload::Insert,
    Workload::Delete,
];

/// The least time that the machine needs for an operation of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Nanoseconds of the thread's time per operation, in a pass.
    pub ns: f64,
    /// The 99.9th percentile of operations that are timed one by one; the difference to `ns` is the machine's other
    /// work.
    pub p999_us: f64,
}

/// The bounds of each kind of workload that has one.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    bounds: Vec<(Workload, Bound)>,
}

impl Bounds {
    /// Measures bare operations on as many records as `config` has, with as many threads, in a temporary file in the
    /// directory `home`. Ends early when `stop` becomes true.
    ///
    /// # Errors
    /// If there is no space for the file.
    pub fn measure(
        home: &Path,
        config: &Config,
        latency: Latency,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Bounds, Error> {
        let is_wanted = |bounded: &Workload| config.workloads.iter().any(|one| one.bounded_as() == Some(*bounded));
        let workloads: Vec<Workload> = MEASURED.into_iter().filter(is_wanted).collect();
        let mut bounds = Bounds::default();
        if workloads.is_empty() {
            return Ok(bounds);
        }
        let bare = Bare::create(home, config, workloads.contains(&Workload::Insert), latency)?;
        let (plan, keeps_order) = (None, false);
        let config = Config { workloads: workloads.clone(), plan, keeps_order, ..config.clone() };
        let session = Session::new(&bare, &config, stop)?;
        session.load()?;
        for workload in workloads {
            if workload.is_ordered() {
                bare.put_in_order()?;
            }
            let bound = session.bound(workload, config.pass.min(PASS_MAX))?;
            bounds.bounds.extend(bound.map(|bound| (workload, bound)));
        }
        Ok(bounds)
    }

    /// Returns the bound of an operation of `workload`.
    #[must_use]
    pub fn of(&self, workload: Workload) -> Option<Bound> {
        let bounded = workload.bounded_as()?;
        self.bounds.iter().find(|(one, _)| *one == bounded).map(|(_, bound)| *bound)
    }
}
