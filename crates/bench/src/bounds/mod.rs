//! What a machine allows, in the run that measures a store there: figures of machines differ, ratios to their bounds hardly.
//!
//! Two subjects take the store's place in the same loops. [`Nothing`] does nothing: what remains is what the loop takes by itself.
//! [`Bare`] does what no store can leave out, with the same flushes and fences: one line of an index, one item, nothing compared,
//! locked, or allocated.

mod bare;
mod in_order;
mod nothing;

use std::path::Path;
use std::time::Duration;

use pmem::Latency;

use crate::run::Config;
use crate::session::Session;
use crate::subject::{Error, Subject};
use crate::workload::Workload;

use self::bare::Bare;
pub(crate) use self::nothing::Nothing;

/// Long beside a turn of the machine's scheduler, short beside a pass.
const PASS_MAX: Duration = Duration::from_millis(250);

/// Those that are measured, in this order: what deletes comes last.
const MEASURED: [Workload; 7] = [
    Workload::Get,
    Workload::Miss,
    Workload::MultiGet,
    Workload::Scan,
    Workload::Update,
    Workload::Insert,
    Workload::Delete,
];

/// What the machine takes for an operation of a workload at least.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Of its thread's time, in a pass.
    pub ns: f64,
    /// 99.9 % took no longer, each timed: what is above `ns` the machine does beside.
    pub p999_us: f64,
}

/// The bounds of each kind of workload that has one.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    bounds: Vec<(Workload, Bound)>,
}

impl Bounds {
    /// Measures bare operations on as many records as `config` has, with as many threads, in a file of the directory `home` that is gone
    /// in the end. Ends early when `stop` becomes true.
    ///
    /// # Errors
    /// If there is no room for the file.
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

    /// Of an operation of `workload`.
    #[must_use]
    pub fn of(&self, workload: Workload) -> Option<Bound> {
        let bounded = workload.bounded_as()?;
        self.bounds.iter().find(|(one, _)| *one == bounded).map(|(_, bound)| *bound)
    }
}
