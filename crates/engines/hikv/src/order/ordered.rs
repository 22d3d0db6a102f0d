//! The order of a store's keys from the first request on: phases, and the work of writers, drainers and scans in each
//! phase.
//!
//! | phase | writers | drainers | scans |
//! |---|---|---|---|
//! | off | take no ticket, retire replaced items | retire the old items of changes left in the queues | wait |
//! | building | take tickets | note changes in the delta, which the build merges at its end | wait |
//! | ready | take tickets | apply changes to the tree, retire the old items | run |
//!
//! # Invariants
//! - Phase and tree change together, under the tree's write lock; the tree is there exactly when the phase is ready.
//! - The phase changes from off to building only with empty queues and when no writer that saw an earlier phase is
//!   still writing. The build reads the index only when no writer that saw the phase off is still writing.
//! - While the phase is building, no item is retired that was in the index at the begin of the phase, or came later: so
//!   positions stay valid from when the build collects them until the delta is merged.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use index::bplus_tree::BPlusTree;
use parking_lot::{Mutex, RwLock};
use pmem::{Dram, Medium};

use super::applied::Applied;
use super::build::Build;
use super::change::Change;
use super::delta::Delta;
use super::many::Many;
use super::progress::BuildProgress;
use super::ring::Ring;
use super::{Ticket, Written};
use crate::Memory;
use crate::canary;
use crate::snapshots::Disposal;
use engine::{OrderState, OrderStats, WantedThreads};

/// The most changes of a queue (paper, section 4.1).
const QUEUE_COUNT: usize = 4096;
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    Off,
    Building,
    Ready,
}

/// The order of a store: queues, tree, and the tree's build.
#[derive(Debug)]
pub struct Ordered<D: Dram> {
    pub(super) queues: Box<[Queue]>,
    phase: AtomicU8,
    pub(super) tree: RwLock<Option<BPlusTree<D>>>,
    pub(super) delta: Delta,
    pub(super) build: Mutex<Build<D>>,
    pub(super) progress: BuildProgress,
    /// The number of workers that should do a step.
    pub(super) wanted: AtomicU8,
    /// The caller's threads apply changes.
    is_callers: AtomicBool,
    /// The queue at which the next of those threads begins.
    pub(super) next_queue: AtomicUsize,
    pub(super) dram: D,
}

impl<D: Dram + Clone> Ordered<D> {
    /// Returns the order of a store with `queue_count` queues: as many can be drained at the same time.
    ///
    /// # Panics
    /// If `queue_count` is 0.
    pub fn new(queue_count: usize, dram: D) -> Ordered<D> {
        Ordered::bounded(queue_count, QUEUE_COUNT, dram)
    }

    /// As [`Ordered::new`], with queues of at most `queue_bound` changes each, a power of two.
    ///
    /// # Panics
    /// If there is no queue, or the bound is no power of two.
    pub fn bounded(queue_count: usize, queue_bound: usize, dram: D) -> Ordered<D> {
        assert!(queue_count > 0, "changes need a queue");
        Ordered::with_queues(queue_count, queue_bound, dram)
    }

    /// Returns the order of a store that is opened without order: there are no queues, the phase is always off, and
    /// ordered operations are not offered.
    pub fn never(dram: D) -> Ordered<D> {
        Ordered::with_queues(0, QUEUE_COUNT, dram)
    }

    fn with_queues(queue_count: usize, queue_bound: usize, dram: D) -> Ordered<D> {
        let queue = |_| Queue {
            ring: Ring::new(queue_bound),
            drainer: Mutex::default(),
            many: Many::default(),
            applied: Applied::default(),
        };
        Ordered {
            queues: (0..queue_count).map(queue).collect(),
            phase: AtomicU8::new(Phase::Off as u8),
            tree: RwLock::new(None),
            delta: Delta::default(),
            build: Mutex::new(Build::default()),
            progress: BuildProgress::default(),
            wanted: AtomicU8::new(WantedThreads::None as u8),
            is_callers: AtomicBool::new(false),
            next_queue: AtomicUsize::new(0),
            dram,
        }
    }
}

impl<D: Dram> Ordered<D> {
    #[inline(always)]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Off,
            1 => Phase::Building,
            _ => Phase::Ready,
        }
    }

    /// Returns false for a store that is opened without order.
    pub(crate) fn is_offered(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Sets the phase. The caller holds the tree's write lock.
    pub(super) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
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
    pub(super) fn leave_to_callers(&self, do_they: bool) {
        self.is_callers.store(do_they, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn queue(&self, partition: usize) -> &Queue {
        &self.queues[partition % self.queues.len()]
    }

    pub(crate) fn queued_count(&self) -> u64 {
        self.queues.iter().map(|queue| queue.ring.len() + queue.many.len()).sum()
    }

    /// Returns the number of changes applied since the store was opened, and of updates among them.
    pub(crate) fn applied(&self) -> [u64; 2] {
        let counts = self.queues.iter().map(|queue| queue.applied.counts());
        counts.fold([0; 2], |[changes, updates], [more_changes, more_updates]| {
            [changes + more_changes, updates + more_updates]
        })
    }

    /// Drops tree and delta, and retires the items that the delta kept. The queues stay as they are.
    pub(super) fn fall<M: Medium>(&self, disposal: Disposal<'_, M, D>) {
        let mut tree = self.tree.write();
        self.set_phase(Phase::Off);
        let (_tree, deferred) = (tree.take(), self.delta.take_all());
        deferred.into_iter().for_each(|change| disposal.retire(change.old));
    }
}

/// The work of writers.
impl<D: Memory> Ordered<D> {
    /// Takes a ticket for a change in a partition; `None` while its queue is full. Calls `partition` only if there are
    /// queues. The caller holds the bucket's lock.
    #[inline(always)]
    pub(crate) fn take(&self, partition: impl FnOnce() -> usize) -> Option<Ticket<'_>> {
        if self.phase() == Phase::Off {
            return Some(None);
        }
        self.queue(partition()).ring.take().map(Some)
    }

    /// Returns true if the partition's queue has a free place, and fewer changes of batches wait than the queue has
    /// places. So the waiting changes are bounded by that number and the changes of sixteen batches. Other threads may
    /// take the space.
    pub(crate) fn has_space(&self, partition: usize) -> bool {
        if self.phase() == Phase::Off {
            return true;
        }
        let queue = self.queue(partition);
        queue.ring.len().max(queue.many.len()) < queue.ring.capacity()
    }

    /// Returns the queue of a partition's changes; 0 if there are no queues.
    pub(crate) fn queue_of(&self, partition: usize) -> usize {
        partition.checked_rem(self.queues.len()).unwrap_or(0)
    }

    /// Queues a change, with the old item to be retired. The caller is pinned and holds no lock.
    #[inline(always)]
    pub(crate) fn enqueue<M: Medium>(&self, disposal: Disposal<'_, M, D>, ticket: Ticket<'_>, written: Written<'_>) {
        let Some(ticket) = ticket else {
            return disposal.retire(written.old);
        };
        if ticket.number() % ASK_EVERY == ASK_EVERY - 1 {
            self.ask_for(ticket.is_crowded());
        }
        ticket.fill(Change::of(written.key, written.old, written.new).to_words());
        if disposal.medium.breaks(canary::RETIRE_BEFORE_TREE) {
            disposal.retire(written.old);
        }
    }

    /// As [`Ordered::enqueue`], for changes of one queue that were published together, in the order of the list. They
    /// are applied at the place of one ticket.
    pub(crate) fn enqueue_all<M: Medium>(
        &self,
        disposal: Disposal<'_, M, D>,
        queue: usize,
        ticket: Ticket<'_>,
        all: &[Written<'_>],
    ) {
        if let [written] = *all {
            return self.enqueue(disposal, ticket, written);
        }
        let Some(ticket) = ticket else {
            return all.iter().for_each(|written| disposal.retire(written.old));
        };
        if all.len() as u64 >= ASK_EVERY || ticket.number() % ASK_EVERY == ASK_EVERY - 1 {
            self.ask_for(ticket.is_crowded());
        }
        let changes = all.iter().map(|written| Change::of(written.key, written.old, written.new)).collect();
        self.queues[queue].many.put(ticket.number(), changes);
        ticket.fill(Change::MANY);
        if disposal.medium.breaks(canary::RETIRE_BEFORE_TREE) {
            all.iter().for_each(|written| disposal.retire(written.old));
        }
    }

    /// Returns the number of ordered keys, if there is a tree.
    pub(crate) fn key_count(&self) -> Option<u64> {
        self.tree.read().as_ref().map(BPlusTree::len)
    }

    /// Returns the number of workers that should do a step.
    #[inline(always)]
    pub(crate) fn wanted(&self) -> WantedThreads {
        match self.wanted.load(Ordering::Relaxed) {
            0 => WantedThreads::None,
            wanted => Self::wanted_of(wanted),
        }
    }

    /// Separate, because most writes wake no worker.
    #[cold]
    #[inline(never)]
    fn wanted_of(wanted: u8) -> WantedThreads {
        if wanted == 1 { WantedThreads::One } else { WantedThreads::All }
    }

    /// Returns the statistics, if the store has order.
    pub(crate) fn stats(&self) -> Option<OrderStats> {
        if !self.is_offered() {
            return None;
        }
        let state = match self.phase() {
            Phase::Ready => OrderState::Ready,
            _ if self.build.lock().is_asked_for() => OrderState::Building,
            _ => OrderState::Off,
        };
        let (tree, (done, total)) = (self.tree.read(), self.progress.now());
        let [applied_count, updated_count] = self.applied();
        Some(OrderStats {
            state,
            done,
            total,
            queued_count: self.queued_count(),
            delta_count: self.delta.len(),
            applied_count,
            updated_count,
            dram_bytes: tree.as_ref().map_or(0, BPlusTree::dram_bytes),
        })
    }
}
