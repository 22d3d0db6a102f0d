//! The state shared by all connections: the store, the controllers, and the counters.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use hikv::{Durability, Ordered, Store};
use mio::Waker;
use nvme::{ControllerKind, Health, Status};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::apply::status_of;
use crate::auth::Secrets;
use crate::config::Config;
use crate::controller::Controller;
use crate::events::Event;
use crate::limits;
use crate::must_exist::MustExist;
use crate::stop::StopHandle;
use crate::table::Table;

pub(crate) struct Shared {
    pub(crate) store: Store,
    ordered: OnceLock<Ordered>,
    pub(crate) subsystem: String,
    hosts: Vec<String>,
    pub(crate) secrets: Option<Secrets>,
    pub(crate) capacity_bytes: u64,
    store_dir: Option<PathBuf>,
    controllers: Mutex<Table>,
    pub(crate) connection_count: AtomicUsize,
    /// The number of connection slots.
    pub(crate) connection_count_max: usize,
    pub(crate) must_exist: MustExist,
    read_count: AtomicU64,
    write_count: AtomicU64,
    /// Number of ended queues that other loops may have to close.
    ending_count: AtomicU64,
    wakers: Vec<Arc<Waker>>,
    pub(crate) stop: StopHandle,
}

impl Shared {
    pub(crate) fn new(store: Store, config: &Config, wakers: Vec<Arc<Waker>>, stop: StopHandle) -> Shared {
        let own = || format!("nqn.2014-08.org.nvmexpress:uuid:{}", Uuid::from_bytes(store.uuid()));
        Shared {
            subsystem: config.subsystem.clone().unwrap_or_else(own),
            must_exist: MustExist::of(&store),
            store,
            ordered: OnceLock::new(),
            hosts: config.hosts.clone(),
            secrets: config.secrets.clone(),
            capacity_bytes: config.capacity_bytes,
            store_dir: config.store_dir.clone(),
            controllers: Mutex::new(Table::default()),
            connection_count: AtomicUsize::new(0),
            connection_count_max: limits::CONNECTION_COUNT_MAX,
            read_count: AtomicU64::new(0),
            write_count: AtomicU64::new(0),
            ending_count: AtomicU64::new(0),
            wakers,
            stop,
        }
    }

    /// Returns the store's ordered operations. Some engines start building the order at the first call; callers do not
    /// wait for that if the store has background threads.
    pub(crate) fn ordered(&self) -> Result<&Ordered, Status> {
        if let Some(ordered) = self.ordered.get() {
            return Ok(ordered);
        }
        let ordered = self.store.ordered().map_err(|error| status_of(&error))?;
        let has_threads = hikv::FrontEnd::of(&self.store).stats_now().is_ok_and(|stats| stats.worker_count > 0);
        let ordered = if has_threads { ordered.fail_if_not_ready() } else { ordered };
        Ok(self.ordered.get_or_init(|| ordered))
    }

    /// Returns whether a host of this name may connect.
    pub(crate) fn permits_host(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|known| known == host)
    }

    /// Creates a controller for a host's admin queue.
    pub(crate) fn add_controller(
        &self,
        kind: ControllerKind,
        host: (String, [u8; 16]),
        keep_alive_ms: u32,
    ) -> Result<Arc<Controller>, Status> {
        let mut controllers = self.controllers.lock();
        if controllers.len() >= limits::CONNECTION_COUNT_MAX {
            return Err(Status::CONNECT_BUSY);
        }
        Ok(controllers.add(|number| Controller::new(number, kind, host, keep_alive_ms)))
    }

    /// Returns the controller of this number.
    pub(crate) fn controller(&self, number: u16) -> Option<Arc<Controller>> {
        self.controllers.lock().get(number)
    }

    /// Ends a controller, once: its queues are closed by their loops.
    pub(crate) fn end_controller(&self, controller: &Controller) {
        if controller.end() {
            self.controllers.lock().remove(controller.number);
            self.wake_for_endings();
        }
    }

    /// Ends the controller of this number, if it belongs to the same host as `own`. When this returns, no command sent
    /// to it is executed any more: a controller that is not in the table has ended.
    pub(crate) fn end_other(&self, own: &Controller, number: u16) {
        let is_other = |other: &Arc<Controller>| {
            other.number != own.number
                && (&other.host, other.host_id) == (&own.host, own.host_id)
                && other.kind == own.kind
        };
        self.controller(number).filter(is_other).into_iter().for_each(|other| self.end_controller(&other));
    }

    /// Ends a controller to free a slot: the one that has been silent longest, if it exceeds the limit; otherwise the
    /// oldest discovery controller, which is short-lived and needs no secret. It exists until its connections are
    /// closed.
    pub(crate) fn end_silent(&self, now: Instant) -> Option<Weak<Controller>> {
        let ended = {
            let controllers = self.controllers.lock();
            let silent = controllers.iter().filter_map(|controller| Some((controller.silence(now)?, controller)));
            let silent = silent.filter(|(silence, _)| *silence >= limits::SILENCE_MAX);
            let longest = silent.max_by_key(|(silence, _)| *silence).map(|(_, controller)| controller);
            let of_discovery = || controllers.iter().filter(|other| other.kind == ControllerKind::Discovery);
            longest.or_else(|| of_discovery().min_by_key(|other| other.made)).map(Arc::clone)
        }?;
        self.end_controller(&ended);
        Some(Arc::downgrade(&ended))
    }

    pub(crate) fn ending_count(&self) -> u64 {
        self.ending_count.load(Ordering::Acquire)
    }

    /// Wakes every loop to check for ended queues.
    pub(crate) fn wake_for_endings(&self) {
        self.ending_count.fetch_add(1, Ordering::AcqRel);
        // This fails only if the loop has ended.
        self.wakers.iter().for_each(|waker| drop(waker.wake()));
    }

    /// Counts executed key commands.
    pub(crate) fn count(&self, read_count: u64, write_count: u64) {
        for (sum, count) in [(&self.read_count, read_count), (&self.write_count, write_count)] {
            if count > 0 {
                sum.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Returns the bytes of the region used by items and index.
    pub(crate) fn used_bytes(&self) -> u64 {
        hikv::FrontEnd::of(&self.store).stats_now().map_or(0, |stats| stats.live_bytes)
    }

    /// Returns whether a completed write may be lost on a power failure.
    pub(crate) fn has_volatile_cache(&self) -> bool {
        self.store.durability() != Durability::Power
    }

    /// Returns whether the event's condition holds now.
    pub(crate) fn holds(&self, event: Event) -> bool {
        match event {
            Event::SpareLow => self.spare_percent() < limits::SPARE_PERCENT_MIN,
            Event::MediumFailed => self.store.health().is_err(),
        }
    }

    /// Returns the percentage of free space, by the store's own limit or that of its file system.
    fn spare_percent(&self) -> u8 {
        let stats = hikv::FrontEnd::of(&self.store).stats_now().ok();
        let (used, allocated) = stats.map_or((0, 0), |stats| (stats.live_bytes, stats.allocated_bytes));
        let left = self.capacity_bytes.saturating_sub(used);
        let beside = self.store_dir.as_deref().and_then(free_space);
        let spare = beside.map_or(left, |free| left.min(allocated.saturating_sub(used).saturating_add(free)));
        (spare.saturating_mul(100) / (used + spare).max(1)) as u8
    }

    /// Returns the health page's data.
    pub(crate) fn health(&self) -> Health {
        let spare_percent = self.spare_percent();
        Health {
            is_spare_low: spare_percent < limits::SPARE_PERCENT_MIN,
            is_read_only: self.holds(Event::MediumFailed),
            spare_percent,
            threshold_percent: limits::SPARE_PERCENT_MIN,
            read_count: self.read_count.load(Ordering::Relaxed),
            write_count: self.write_count.load(Ordering::Relaxed),
        }
    }
}

/// Returns the free space of a directory's file system, if it is limited.
fn free_space(dir: &Path) -> Option<u64> {
    if !dir.is_dir() {
        return None;
    }
    let found = rustix::fs::statvfs(dir).ok().filter(|found| found.f_blocks > 0)?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hikv::{EngineKind, Options};

    use super::*;

    #[test]
    fn longest_silent_host_makes_way() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::new().engine(EngineKind::Pmekv).durability(Durability::Process);
        let store = options.open(dir.path()).expect("a store");
        let shared = Shared::new(store, &Config::default(), Vec::new(), StopHandle::new());
        let host = || ("nqn.2024-01.org.example:a".to_owned(), [7; 16]);
        let made = |kind, keep_alive_ms| shared.add_controller(kind, host(), keep_alive_ms).expect("there is space");
        let first = made(ControllerKind::Io, 0);
        let discovery = made(ControllerKind::Discovery, 0);
        let kept = made(ControllerKind::Io, 30_000);
        let patient = made(ControllerKind::Io, u32::MAX);
        assert_eq!(discovery.state().keep_alive_ms, 120_000, "it ends by itself");
        let now = Instant::now();
        let later = now + limits::SILENCE_MAX + Duration::from_secs(1);
        let ends = |now| shared.end_silent(now).is_some();
        assert!(ends(later) && first.is_over());
        assert!(ends(later) && patient.is_over(), "a promise for weeks is none");
        assert!(!discovery.is_over(), "it ends by itself");
        assert!(ends(now) && discovery.is_over(), "nobody needs it for long");
        assert!(!ends(later) && !kept.is_over(), "it ends by itself, or is heard");
    }

    /// Commands that a host has sent to an abandoned controller are not executed after those sent to its next one.
    #[test]
    fn host_ends_only_its_own_controllers() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::new().engine(EngineKind::Pmekv).durability(Durability::Process);
        let shared =
            Shared::new(options.open(dir.path()).expect("a store"), &Config::default(), Vec::new(), StopHandle::new());
        let made = |name: &str, id| {
            shared.add_controller(ControllerKind::Io, (name.to_owned(), [id; 16]), 0).expect("there is space")
        };
        let [old, own, other_name, other_id] = [made("a", 1), made("a", 1), made("b", 1), made("a", 2)];
        for controller in [&own, &other_name, &other_id] {
            shared.end_other(&own, controller.number);
            assert!(!controller.is_over());
        }
        shared.end_other(&own, old.number);
        assert!(old.is_over() && shared.controller(old.number).is_none());
        shared.end_other(&own, old.number);
        shared.end_other(&own, u16::MAX);
    }
}
