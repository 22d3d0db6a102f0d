//! The queues of changes, and the requests for threads that apply them.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::applied::Applied;
use super::change::Change;
use super::many::Many;
use super::ring::{Ring, Ticket};
use super::written::Written;
use engine::WantedThreads;

/// A worker is requested after this many changes of a queue: often enough that the queue does not fill up, and rarely
/// enough that the cost of waking a worker is negligible for writes.
const ASK_EVERY: u64 = 256;

/// One queue, of a group of partitions. The thread that holds `drainer` applies its changes.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) ring: Ring,
    pub(super) drainer: Mutex<()>,
    pub(super) many: Many,
    pub(super) applied: Applied,
}

/// The queues of a store; none if it was opened without order.
#[derive(Debug)]
pub(super) struct Queues {
    queues: Box<[Queue]>,
    /// The queue at which the next of the caller's threads begins.
    next: AtomicUsize,
    /// The number of workers that should do a step.
    wanted: AtomicU8,
    /// The caller's threads apply changes.
    is_callers: AtomicBool,
}

impl Queues {
    pub(super) fn new(queue_count: usize, queue_bound: usize) -> Queues {
        let queue = |_| Queue {
            ring: Ring::new(queue_bound),
            drainer: Mutex::default(),
            many: Many::default(),
            applied: Applied::default(),
        };
        Queues {
            queues: (0..queue_count).map(queue).collect(),
            next: AtomicUsize::new(0),
            wanted: AtomicU8::new(WantedThreads::None as u8),
            is_callers: AtomicBool::new(false),
        }
    }

    pub(super) fn all(&self) -> &[Queue] {
        &self.queues
    }

    /// Returns all queues; each call begins at another one.
    pub(super) fn all_in_turn(&self) -> impl Iterator<Item = &Queue> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        (0..self.queues.len()).map(move |number| &self.queues[first.wrapping_add(number) % self.queues.len()])
    }

    /// Returns the queue of a partition's changes.
    #[inline(always)]
    pub(super) fn of(&self, partition: usize) -> &Queue {
        &self.queues[partition % self.queues.len()]
    }

    /// Returns the number of the queue of a partition's changes; 0 if there are no queues.
    pub(super) fn number_of(&self, partition: usize) -> usize {
        partition.checked_rem(self.queues.len()).unwrap_or(0)
    }

    /// Returns the number of waiting changes.
    pub(super) fn queued_count(&self) -> u64 {
        self.queues.iter().map(|queue| queue.ring.len() + queue.many.len()).sum()
    }

    /// Returns the number of changes applied since the store was opened, and of updates among them.
    pub(super) fn applied(&self) -> [u64; 2] {
        let counts = self.queues.iter().map(|queue| queue.applied.counts());
        counts.fold([0; 2], |[changes, updates], [more_changes, more_updates]| {
            [changes + more_changes, updates + more_updates]
        })
    }

    /// Returns the number of tickets taken of each queue so far.
    pub(super) fn tails(&self) -> Box<[u64]> {
        self.queues.iter().map(|queue| queue.ring.tail()).collect()
    }

    /// Returns true while a ticket before `tails` is not applied.
    pub(super) fn is_behind(&self, tails: &[u64]) -> bool {
        self.queues.iter().zip(tails).any(|(queue, tail)| queue.ring.head() < *tail)
    }

    /// Fills a ticket with the change of a key.
    #[inline(always)]
    pub(super) fn fill(&self, ticket: Ticket<'_>, written: Written<'_>) {
        if ticket.number() % ASK_EVERY == ASK_EVERY - 1 {
            self.ask_for(ticket.is_crowded());
        }
        ticket.fill(Change::of(written.key, written.old, written.new).to_words());
    }

    /// Fills a ticket of this queue with the changes of many keys.
    pub(super) fn fill_many(&self, queue: usize, ticket: Ticket<'_>, all: &[Written<'_>]) {
        if all.len() as u64 >= ASK_EVERY || ticket.number() % ASK_EVERY == ASK_EVERY - 1 {
            self.ask_for(ticket.is_crowded());
        }
        let changes = all.iter().map(|written| Change::of(written.key, written.old, written.new)).collect();
        self.queues[queue].many.put(ticket.number(), changes);
        ticket.fill(Change::MANY);
    }

    /// Requests steps of workers.
    pub(super) fn ask(&self, wanted: WantedThreads) {
        self.wanted.store(wanted as u8, Ordering::Release);
    }

    /// Requests steps after every [`ASK_EVERY`] changes: of all workers if the queue is crowded.
    fn ask_for(&self, is_crowded: bool) {
        if is_crowded {
            self.ask(WantedThreads::All);
        } else if !self.is_callers.load(Ordering::Relaxed) {
            self.ask(WantedThreads::One);
        }
    }

    /// Sets whether the caller's threads apply changes.
    pub(super) fn leave_to_callers(&self, is_enabled: bool) {
        self.is_callers.store(is_enabled, Ordering::Relaxed);
    }

    /// Returns the number of workers that should do a step.
    #[inline(always)]
    pub(super) fn wanted(&self) -> WantedThreads {
        match self.wanted.load(Ordering::Relaxed) {
            0 => WantedThreads::None,
            wanted => wanted_of(wanted),
        }
    }
}

/// Separate, because most writes wake no worker.
#[cold]
#[inline(never)]
fn wanted_of(wanted: u8) -> WantedThreads {
    if wanted == 1 { WantedThreads::One } else { WantedThreads::All }
}
