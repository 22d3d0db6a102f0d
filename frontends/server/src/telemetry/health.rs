//! The server's health: the status, and the reason if the server does not serve.

use hikv::{Error, FilesStatus, MediumError, Stats};
use serde::Serialize;

use crate::shared::Shared;

/// The response to health probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    pub(crate) status: Status,
    /// A sentence for the operator: the reason why it does not serve, or a warning while it does; empty if all is well.
    pub(crate) reason: String,
    /// The operations that are available now.
    pub(crate) ready: Vec<&'static str>,
    /// The operations that are not.
    pub(crate) waiting: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&str")]
pub(crate) enum Status {
    /// The store is being opened.
    Opening,
    /// The order of keys is being built; everything except ranges is available.
    Rebuilding,
    Serving,
    /// Out of space: writes that need space are refused until some is freed.
    Full,
    /// The disk failed or a write panicked: the store refuses writes until it is reopened.
    Poisoned,
    /// The store's files were deleted: it refuses writes.
    Removed,
    Stopping,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Opening => "opening",
            Status::Rebuilding => "rebuilding",
            Status::Serving => "serving",
            Status::Full => "full",
            Status::Poisoned => "poisoned",
            Status::Removed => "removed",
            Status::Stopping => "stopping",
        }
    }
}

impl From<Status> for &str {
    fn from(status: Status) -> &'static str {
        status.name()
    }
}

/// The reason for a store whose directory was renamed.
const MOVED: &str = "the store's files were moved; a restart would not find them at their path";

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
        Health { status: Status::Stopping, reason: "the server is stopping".into(), ..Health::opening() }
    }

    /// Computes the health; `stats` must be current.
    pub(crate) fn of(shared: &Shared, stats: &Stats, disk_free_bytes: Option<u64>) -> Health {
        if shared.stop.is_stopped() {
            return Health::stopping();
        }
        let is_requested = !matches!(stats.order, "none" | "off");
        let order = is_requested.then(|| Steps {
            is_ready: stats.order == "ready",
            done: stats.order_done,
            total: stats.order_total,
        });
        let out_of_space = shared.telemetry.space.out_of_space(stats, disk_free_bytes);
        let health = Health::from_parts(shared.keyspace.store.health().err(), out_of_space, order, stats.counted);
        match hikv::FrontEnd::of(&shared.keyspace.store).check_files() {
            FilesStatus::Moved if health.reason.is_empty() => Health { reason: MOVED.into(), ..health },
            _ => health,
        }
    }

    fn from_parts(
        poison: Option<Error>,
        out_of_space: Option<String>,
        order: Option<Steps>,
        is_counted: bool,
    ) -> Health {
        let is_ordered = order.is_none_or(|order| order.is_ready);
        let parts = [
            (READS, true, true),
            (WRITES, poison.is_none() && out_of_space.is_none(), true),
            (RANGES, is_ordered, order.is_some()),
            (COUNTS, is_counted, true),
        ];
        let named = |wanted: bool| {
            parts.iter().filter(|(_, is_ready, exists)| *exists && *is_ready == wanted).map(|part| part.0).collect()
        };
        let (status, reason) = match (poison, out_of_space, order) {
            (Some(error @ Error::Medium(MediumError::Removed)), ..) => (Status::Removed, error.to_string()),
            (Some(error), ..) => (Status::Poisoned, error.to_string()),
            (None, Some(reason), _) => (Status::Full, reason),
            (None, None, Some(order)) if !order.is_ready => (Status::Rebuilding, order.progress()),
            (None, None, _) => (Status::Serving, String::new()),
        };
        Health { status, reason, ready: named(true), waiting: named(false) }
    }

    /// Returns whether all operations are available.
    pub(crate) fn is_serving(&self) -> bool {
        self.status == Status::Serving
    }

    /// Returns whether single keys can be read and written.
    pub(crate) fn accepts_requests(&self) -> bool {
        self.ready.contains(&READS) && self.ready.contains(&WRITES)
    }
}

/// Progress of building the order of keys.
#[derive(Clone, Copy)]
struct Steps {
    is_ready: bool,
    done: u64,
    total: u64,
}

impl Steps {
    fn progress(self) -> String {
        let percent = (self.done * 100).checked_div(self.total).unwrap_or(0);
        format!("building the order of keys: {percent} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(is_ready: bool) -> Option<Steps> {
        Some(Steps { is_ready, done: 1, total: 3 })
    }

    #[test]
    fn key_wait_reason_is_reported() {
        let health = Health::from_parts(None, None, order(false), false);
        assert_eq!((health.status, health.reason.as_str()), (Status::Rebuilding, "building the order of keys: 33 %"));
        assert_eq!((health.ready.as_slice(), health.waiting.as_slice()), (&[READS, WRITES][..], &[RANGES, COUNTS][..]));
        assert!(health.accepts_requests() && !health.is_serving());
    }

    #[test]
    fn store_without_order_never_waits_for_order() {
        let health = Health::from_parts(None, None, None, true);
        assert_eq!((health.status, health.ready.as_slice()), (Status::Serving, &[READS, WRITES, COUNTS][..]));
        assert!(health.is_serving() && health.waiting.is_empty());
    }

    #[test]
    fn failed_disk_leaves_reads() {
        let poison = Error::Medium(MediumError::Poisoned { errno: 5 });
        let health = Health::from_parts(Some(poison), None, order(true), true);
        assert_eq!((health.status, health.waiting.as_slice()), (Status::Poisoned, &[WRITES][..]));
        assert!(health.reason.contains("error number 5"), "{}", health.reason);
        assert!(!health.accepts_requests() && !health.is_serving());
    }
    #[test]
    fn lack_of_space_and_removal_leave_reads() {
        for (poison, out_of_space, status) in [
            (None, Some("no space left".to_owned()), Status::Full),
            (Some(MediumError::Removed.into()), None, Status::Removed),
        ] {
            let health = Health::from_parts(poison, out_of_space, None, true);
            assert_eq!((health.status, health.waiting.as_slice()), (status, &[WRITES][..]));
            assert!(!health.reason.is_empty() && !health.accepts_requests() && !health.is_serving());
        }
    }
}
