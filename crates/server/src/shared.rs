//! What all event loops share: the store, and counters, each on the cache lines of the loop that writes them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hikv::{Error, Ordered, Store};

use crate::StopHandle;
use crate::administration::acl::Acl;
use crate::administration::log::Log;
use crate::administration::settings::Settings;
use crate::administration::start::ConfigFile;
use crate::clients::Clients;
use crate::connections::transport::Certificates;
use crate::execution::errands::Errands;
use crate::execution::gate::Gate;
use crate::execution::pause::Pause;
use crate::keyspace::databases::Databases;
use crate::keyspace::memory::MemoryLimit;
use crate::keyspace::saves::Saves;
use crate::mail::{Mail, Mailbox};
use crate::observers::monitors::Monitors;
use crate::observers::pubsub::PubSub;
use crate::observers::tracking::Tracking;
use crate::observers::watch::Watches;
use crate::telemetry::latency::Latency;
use crate::telemetry::slowlog::SlowLog;
use crate::telemetry::{Baseline, BatchCounts, CommandCounters, Counted, Counters, ErrorCounts, Figures, Kind};

/// The state of one server.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) order: Order,
    /// Where clients without TLS are served.
    pub(crate) port: Option<u16>,
    /// Where the settings were read from.
    pub(crate) config_file: Option<ConfigFile>,
    pub(crate) started: Instant,
    pub(crate) loops: Box<[LoopCounters]>,
    /// One for each loop.
    pub(crate) mailboxes: Box<[Mailbox]>,
    pub(crate) gate: Gate,
    pub(crate) databases: Databases,
    pub(crate) settings: Settings,
    pub(crate) acl: Acl,
    pub(crate) clients: Clients,
    pub(crate) watches: Watches,
    pub(crate) pubsub: PubSub,
    pub(crate) monitors: Monitors,
    pub(crate) tracking: Tracking,
    pub(crate) memory: MemoryLimit,
    pub(crate) slowlog: SlowLog,
    pub(crate) latency: Latency,
    pub(crate) log: Log,
    pub(crate) errors: ErrorCounts,
    pub(crate) baseline: Baseline,
    pub(crate) figures: Figures,
    pub(crate) saves: Saves,
    pub(crate) pause: Pause,
    pub(crate) errands: Errands,
    pub(crate) mail: Mail,
    pub(crate) stop: StopHandle,
    /// How long clients may take to read their last replies.
    pub(crate) drain_max: Duration,
    /// How long clients may take until TLS is agreed on.
    pub(crate) handshake_max: Duration,
    pub(crate) certificates: Option<Arc<Certificates>>,
}

/// The ordered operations, once a client has asked for them: until then no write pays for the order of keys.
#[derive(Default)]
pub(crate) struct Order(OnceLock<Asked>);

/// One is for callers that wait until keys are in order, the other for those that do not.
pub(crate) struct Asked {
    pub(crate) waiting: Ordered,
    pub(crate) refusing: Ordered,
}

impl Order {
    /// The first call has the keys of `store` put in order, in the background.
    pub(crate) fn of(&self, store: &Store) -> Result<&Asked, Error> {
        if let Some(asked) = self.0.get() {
            return Ok(asked);
        }
        let waiting = store.ordered()?;
        Ok(self.0.get_or_init(|| Asked { refusing: waiting.clone().refusing_early(), waiting }))
    }
}

/// Two lines wide, since neighbouring lines are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct LoopCounters {
    clients: AtomicUsize,
    connections: AtomicU64,
    requests: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    errors: AtomicU64,
    refused: AtomicU64,
    /// The number of the loop's thread, once it runs.
    thread: AtomicI32,
    pub(crate) watched: Counters,
    pub(crate) commands: CommandCounters,
}

/// Events to be counted, or the sums over all loops.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) connections: u64,
    pub(crate) commands: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) errors: u64,
    /// The same and more, by kind; of a batch alone.
    pub(crate) batch: BatchCounts,
}

impl Tally {
    /// Counts a request that is answered with an error.
    pub(crate) fn add_error(&mut self, kind: Kind) {
        self.errors += 1;
        self.batch.add_error(kind);
    }
}

impl Shared {
    pub(crate) fn clients(&self) -> usize {
        self.loops.iter().map(|counters| counters.clients.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn totals(&self) -> Tally {
        self.loops.iter().fold(Tally::default(), |sum, counters| Tally {
            connections: sum.connections + counters.connections.load(Ordering::Relaxed),
            commands: sum.commands + counters.requests.load(Ordering::Relaxed),
            hits: sum.hits + counters.hits.load(Ordering::Relaxed),
            misses: sum.misses + counters.misses.load(Ordering::Relaxed),
            errors: sum.errors + counters.errors.load(Ordering::Relaxed),
            ..sum
        })
    }

    /// What is watched, of all loops together.
    pub(crate) fn counted(&self) -> Counted {
        Counted::of(self.loops.iter().map(|counters| &counters.watched))
    }

    /// Clients that were turned away since there were too many.
    pub(crate) fn refused_connections(&self) -> u64 {
        self.loops.iter().map(|counters| counters.refused.load(Ordering::Relaxed)).sum()
    }

    /// Whether a client that waits for others may look whether it can go on; if not, there will be a wake-up, or a pause ends.
    pub(crate) fn lets_go_on(&self) -> bool {
        self.pause.remaining().is_none() && !self.mail.is_full()
    }

    /// Whether clients from there are turned away, since they could do everything without a password.
    pub(crate) fn is_closed_to(&self, ip: IpAddr) -> bool {
        is_elsewhere(ip) && self.settings.is_protected() && self.acl.is_open()
    }

    /// The loop with the fewest clients.
    fn idlest_loop(&self) -> usize {
        let clients = |index: &usize| self.loops[*index].clients.load(Ordering::Relaxed);
        (0..self.loops.len()).min_by_key(clients).unwrap_or(0)
    }
}

impl LoopCounters {
    /// Takes note that the calling thread is the loop's.
    pub(crate) fn begin(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    }

    /// The loop's thread; 0 before it runs.
    pub(crate) fn thread(&self) -> i32 {
        self.thread.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, tally: Tally) {
        self.requests.fetch_add(tally.commands, Ordering::Relaxed);
        self.hits.fetch_add(tally.hits, Ordering::Relaxed);
        self.misses.fetch_add(tally.misses, Ordering::Relaxed);
        self.errors.fetch_add(tally.errors, Ordering::Relaxed);
    }
}

pub(crate) fn is_elsewhere(ip: IpAddr) -> bool {
    !ip.to_canonical().is_loopback()
}

/// A client's place among as many as may be, on one loop; dropping it frees the place.
pub(crate) struct Admission {
    pub(crate) shared: Arc<Shared>,
    pub(crate) loop_index: usize,
    /// Clients are numbered in the order they came.
    pub(crate) client_id: u64,
}

impl Admission {
    /// A place on the loop with the fewest clients; none if the server is full. Only the accepting loop calls it, so
    /// the limit holds without a lock.
    pub(crate) fn try_new(shared: &Arc<Shared>) -> Option<Admission> {
        if shared.clients() >= shared.settings.clients_max() {
            shared.loops[0].refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let loop_index = shared.idlest_loop();
        let counters = &shared.loops[loop_index];
        counters.clients.fetch_add(1, Ordering::Relaxed);
        counters.connections.fetch_add(1, Ordering::Relaxed);
        Some(Admission { shared: Arc::clone(shared), loop_index, client_id: shared.totals().connections })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.shared.loops[self.loop_index].clients.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_several_addresses() {
        for ip in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(!is_elsewhere(ip.parse().expect("an address")), "{ip}");
        }
        for ip in ["10.0.0.1", "0.0.0.0", "::", "::ffff:10.0.0.1", "fe80::1"] {
            assert!(is_elsewhere(ip.parse().expect("an address")), "{ip}");
        }
    }
}
