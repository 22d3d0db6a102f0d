//! Statistics of all event loops: each loop writes counters on its own cache lines.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hikv::pool::Sampled;

use super::commands::{CommandCounters, CommandTotal};
use super::counters::{BatchCounts, Counted, Counters};
use super::histogram::add;
use command_table as table;
use command_table::Kind;

/// Two cache lines, because the processor prefetches neighbouring lines in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct LoopCounters {
    clients: AtomicUsize,
    connections: AtomicU64,
    requests: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    errors: AtomicU64,
    changes: AtomicU64,
    refused: AtomicU64,
    /// Requests and command time by pool kind.
    served: [[AtomicU64; 2]; POOL_KINDS],
    /// The loop's thread ID, once it runs.
    thread: AtomicI32,
    pub(crate) watched: Counters,
    pub(crate) commands: CommandCounters,
}

/// Gets and everything else that leaves no changes to apply, scans, writes.
const POOL_KINDS: usize = 3;

/// Increments of the counters, or the sums over all loops.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct EventCounts {
    pub(crate) connections: u64,
    pub(crate) commands: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) errors: u64,
    /// The same and more, by kind; for one batch only.
    pub(crate) batch: BatchCounts,
    /// Command time by pool kind.
    pub(super) spent_ns: [u64; POOL_KINDS],
}

impl EventCounts {
    /// Counts a request that is answered with an error.
    pub(crate) fn add_error(&mut self, kind: Kind) {
        self.errors += 1;
        self.batch.add_error(kind);
    }
}

impl EventCounts {
    /// Adds the duration of commands of this kind.
    #[inline]
    pub(crate) fn add_time(&mut self, kind: Kind, took: Duration) {
        self.spent_ns[in_pool(kind) as usize] += took.as_nanos() as u64;
    }
}

impl LoopCounters {
    /// Records that the calling thread is the loop's.
    pub(crate) fn begin(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    }

    /// Returns the loop's thread ID; 0 before it runs.
    pub(crate) fn thread(&self) -> i32 {
        self.thread.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, event_counts: EventCounts) {
        self.requests.fetch_add(event_counts.commands, Ordering::Relaxed);
        self.hits.fetch_add(event_counts.hits, Ordering::Relaxed);
        self.misses.fetch_add(event_counts.misses, Ordering::Relaxed);
        self.errors.fetch_add(event_counts.errors, Ordering::Relaxed);
        let mut counts = [0; POOL_KINDS];
        Kind::ALL.into_iter().for_each(|kind| counts[in_pool(kind) as usize] += event_counts.batch.request_count(kind));
        let kinds = self.served.iter().zip(counts.into_iter().zip(event_counts.spent_ns));
        for (served, (count, spent_ns)) in kinds.filter(|(_, new)| *new != (0, 0)) {
            add(&served[0], count);
            add(&served[1], spent_ns);
        }
    }

    /// Counts changes of keys, as Redis counts them.
    #[inline]
    pub(crate) fn note_changes(&self, count: u64) {
        self.changes.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the requests served so far: gets, scans, writes.
    pub(crate) fn served(&self) -> [Sampled; POOL_KINDS] {
        self.served.each_ref().map(|served| {
            let [count, ticks] = served.each_ref().map(|word| word.load(Ordering::Relaxed));
            Sampled { count, timed_count: count, ticks }
        })
    }
}

/// Returns a command's kind for the thread pool: a write leaves changes to apply, and a scan takes several times as
/// long as a get.
#[inline]
fn in_pool(kind: Kind) -> hikv::pool::Kind {
    match kind {
        Kind::Set | Kind::Delete | Kind::Update | Kind::Transaction => hikv::pool::Kind::Write,
        Kind::Range => hikv::pool::Kind::Scan,
        Kind::Get | Kind::Read | Kind::Message | Kind::Other => hikv::pool::Kind::Get,
    }
}

/// The counters of all loops.
#[derive(Clone)]
pub(crate) struct Loops(Arc<[LoopCounters]>);

impl Deref for Loops {
    type Target = [LoopCounters];

    fn deref(&self) -> &[LoopCounters] {
        &self.0
    }
}

impl Loops {
    pub(crate) fn new(count: usize) -> Loops {
        Loops((0..count).map(|_| LoopCounters::default()).collect())
    }

    pub(crate) fn clients(&self) -> usize {
        self.iter().map(|counters| counters.clients.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn totals(&self) -> EventCounts {
        self.iter().fold(EventCounts::default(), |sum, counters| EventCounts {
            connections: sum.connections + counters.connections.load(Ordering::Relaxed),
            commands: sum.commands + counters.requests.load(Ordering::Relaxed),
            hits: sum.hits + counters.hits.load(Ordering::Relaxed),
            misses: sum.misses + counters.misses.load(Ordering::Relaxed),
            errors: sum.errors + counters.errors.load(Ordering::Relaxed),
            ..sum
        })
    }

    /// Returns the monitored counters, summed over all loops.
    pub(crate) fn counted(&self) -> Counted {
        Counted::of(self.iter().map(|counters| &counters.watched))
    }

    /// Returns the statistics of each command of the table.
    pub(super) fn commands(&self) -> Vec<CommandTotal> {
        let mut commands = vec![CommandTotal::default(); table::entries().len()];
        self.iter().for_each(|counters| counters.commands.add_to(&mut commands));
        commands
    }

    /// Returns the number of changes of keys since the start.
    pub(crate) fn change_count(&self) -> u64 {
        self.iter().map(|counters| counters.changes.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of clients refused because of `maxclients`.
    pub(crate) fn refused_connections(&self) -> u64 {
        self.iter().map(|counters| counters.refused.load(Ordering::Relaxed)).sum()
    }

    /// Returns the loop with the fewest clients.
    fn idlest(&self) -> usize {
        let clients = |index: &usize| self[*index].clients.load(Ordering::Relaxed);
        (0..self.len()).min_by_key(clients).unwrap_or(0)
    }

    /// Counts a new client, and returns the index of its loop and the number of clients so far; `None` if there are
    /// `clients_max`.
    pub(crate) fn admit(&self, clients_max: usize) -> Option<(usize, u64)> {
        if self.clients() >= clients_max {
            self[0].refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let loop_index = self.idlest();
        self[loop_index].clients.fetch_add(1, Ordering::Relaxed);
        self[loop_index].connections.fetch_add(1, Ordering::Relaxed);
        Some((loop_index, self.totals().connections))
    }

    /// Counts that a client of the loop has left.
    pub(crate) fn dismiss(&self, loop_index: usize) {
        self[loop_index].clients.fetch_sub(1, Ordering::Relaxed);
    }
}
