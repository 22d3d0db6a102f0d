//! Whether the server serves, and if it does not, why.

use hikv::Stats;
use serde::Serialize;

use crate::shared::Shared;

/// What probes are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    pub(crate) status: Status,
    /// A sentence for people; empty where all is well.
    pub(crate) reason: String,
    /// What is answered now.
    pub(crate) ready: Vec<&'static str>,
    /// What is not.
    pub(crate) waiting: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&str")]
pub(crate) enum Status {
    /// The store is being opened.
    Opening,
    /// Keys are being put in order; all but ranges is answered.
    Rebuilding,
    Serving,
    /// The disk failed: the store takes no writes until it is opened again.
    Poisoned,
    Stopping,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Opening => "opening",
            Status::Rebuilding => "rebuilding",
            Status::Serving => "serving",
            Status::Poisoned => "poisoned",
            Status::Stopping => "stopping",
        }
    }
}

impl From<Status> for &str {
    fn from(status: Status) -> &'static str {
        status.name()
    }
}

const READS: &str = "reads";
const WRITES: &str = "writes";
const RANGES: &str = "ranges";
const COUNTS: &str = "counts";

impl Health {
    pub(crate) fn opening() -> Health {
        let reason = "the store is being opened".into();
        Health { status: Status::Opening, reason, ready: Vec::new(), waiting: vec![READS, WRITES, RANGES, COUNTS] }
    }

    pub(crate) fn stopping() -> Health {
        Health { status: Status::Stopping, reason: "the server stops".into(), ..Health::opening() }
    }

    /// `stats` are of the moment.
    pub(crate) fn of(shared: &Shared, stats: &Stats) -> Health {
        if shared.stop.is_stopped() {
            return Health::stopping();
        }
        let poison = shared.store.health().err();
        let keeps_order = shared.order.is_some();
        let is_ordered = stats.order == "ready";
        let parts = [
            (READS, true, true),
            (WRITES, poison.is_none(), true),
            (RANGES, is_ordered, keeps_order),
            (COUNTS, stats.counted, true),
        ];
        let named = |wanted: bool| {
            parts.iter().filter(|(_, is_ready, exists)| *exists && *is_ready == wanted).map(|part| part.0).collect()
        };
        let (status, reason) = match poison {
            Some(error) => (Status::Poisoned, error.to_string()),
            None if keeps_order && !is_ordered => (Status::Rebuilding, order_progress(stats)),
            None => (Status::Serving, String::new()),
        };
        Health { status, reason, ready: named(true), waiting: named(false) }
    }

    /// Whether everything that is asked for is answered.
    pub(crate) fn is_serving(&self) -> bool {
        self.status == Status::Serving
    }

    /// Whether single keys can be read and written.
    pub(crate) fn takes_requests(&self) -> bool {
        self.ready.contains(&READS) && self.ready.contains(&WRITES)
    }
}

fn order_progress(stats: &Stats) -> String {
    let percent = (stats.order_done * 100).checked_div(stats.order_total).unwrap_or(0);
    format!("keys are being put in order: {percent} %")
}
