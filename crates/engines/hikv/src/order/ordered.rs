//! The order of a store's keys: the work of writers and drainers for it, and its steps.

use index::Position;
use index::bplus_tree::BPlusTree;
use pmem::{Backoff, Dram, Medium};

use super::build::{Builder, Site};
use super::queues::Queues;
use super::source::Source;
use super::tree::{Phase, Tree};
use super::written::{Ticket, Written};
use crate::canary;
use crate::memory::Memory;
use crate::snapshots::Disposal;
use engine::{Early, Error, OrderState, OrderStats, Progress, QueueStats, WantedThreads};

/// The most changes of a queue (paper, section 4.1).
const QUEUE_COUNT: usize = 4096;

/// The order of a store: queues, tree, and the tree's build.
#[derive(Debug)]
pub struct Ordered<D: Dram> {
    pub(super) queues: Queues,
    pub(super) tree: Tree<D>,
    pub(super) builder: Builder<D>,
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
        Ordered { queues: Queues::new(queue_count, queue_bound), tree: Tree::default(), builder: Builder::new(dram) }
    }
}

/// The work of writers.
impl<D: Memory> Ordered<D> {
    /// Returns false for a store that is opened without order.
    pub(crate) fn is_offered(&self) -> bool {
        !self.queues.all().is_empty()
    }

    /// Takes a ticket for a change in a partition; `None` while its queue is full. Calls `partition` only if there are
    /// queues. The caller holds the bucket's lock.
    #[inline(always)]
    pub(crate) fn take(&self, partition: impl FnOnce() -> usize) -> Option<Ticket<'_>> {
        if self.tree.phase() == Phase::Off {
            return Some(None);
        }
        self.queues.of(partition()).ring.take().map(Some)
    }

    /// Returns true if the partition's queue has a free place, and fewer changes of batches wait than the queue has
    /// places. So the waiting changes are bounded by that number and the changes of sixteen batches. Other threads may
    /// take the space.
    pub(crate) fn has_space(&self, partition: usize) -> bool {
        if self.tree.phase() == Phase::Off {
            return true;
        }
        let queue = self.queues.of(partition);
        queue.ring.len().max(queue.many.len()) < queue.ring.capacity()
    }

    /// Returns the queue of a partition's changes; 0 if there are no queues.
    pub(crate) fn queue_of(&self, partition: usize) -> usize {
        self.queues.number_of(partition)
    }

    /// Queues a change, with the old item to be retired. The caller is pinned and holds no lock.
    #[inline(always)]
    pub(crate) fn enqueue<M: Medium>(&self, disposal: Disposal<'_, M, D>, ticket: Ticket<'_>, written: Written<'_>) {
        let Some(ticket) = ticket else {
            return disposal.retire(written.old);
        };
        self.queues.fill(ticket, written);
        if disposal.medium().breaks(canary::RETIRE_BEFORE_TREE) {
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
        self.queues.fill_many(queue, ticket, all);
        if disposal.medium().breaks(canary::RETIRE_BEFORE_TREE) {
            all.iter().for_each(|written| disposal.retire(written.old));
        }
    }
}

/// The work of the background and of scans.
impl<D: Memory> Ordered<D> {
    /// Starts building the tree, unless it is there or being built. Returns once the error that lost an earlier tree.
    pub(crate) fn request(&self) -> Result<(), Error> {
        self.builder.request(&self.tree, &self.queues)
    }

    /// Does a bounded piece of the work.
    pub(crate) fn step<M: Medium>(&self, source: Source<'_, M, D>) -> Result<Progress, Error> {
        self.queues.ask(WantedThreads::None);
        if self.build_step(source)? == Progress::More {
            return Ok(Progress::More);
        }
        Ok(if self.drain_all(source.disposal)? > 0 { Progress::More } else { Progress::Idle })
    }

    /// Makes space in the partition's full queue, or lets other threads run. The caller holds no lock, and no pin of
    /// its own.
    pub(crate) fn make_space<M: Medium>(
        &self,
        source: Source<'_, M, D>,
        partition: usize,
        backoff: &mut Backoff,
    ) -> Result<(), Error> {
        self.queues.ask(WantedThreads::All);
        if !self.drain_partition(source.disposal, partition)? && self.build_step(source)? == Progress::Idle {
            // Another thread drains, or the next ticket's writer is not done yet.
            backoff.relax();
        }
        Ok(())
    }

    /// Applies a group of the changes in the partition's queue; returns false if that is not possible now. For callers
    /// that may be pinned.
    pub(crate) fn drain_partition<M: Medium>(
        &self,
        disposal: Disposal<'_, M, D>,
        partition: usize,
    ) -> Result<bool, Error> {
        Ok(self.drain(disposal, self.queues.of(partition))? > 0)
    }

    fn build_step<M: Medium>(&self, source: Source<'_, M, D>) -> Result<Progress, Error> {
        let site = Site { source, queues: &self.queues, tree: &self.tree };
        self.builder.step(site, || self.drain_all(source.disposal))
    }

    /// Empties the queues and drops an unfinished build; returns false if changes are left. The caller ensures that no
    /// thread writes during the call.
    pub(crate) fn quiesce<M: Medium>(&self, disposal: Disposal<'_, M, D>) -> Result<bool, Error> {
        self.builder.give_up(&self.tree, disposal);
        while self.queues.queued_count() > 0 {
            if self.drain_all(disposal)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Drops the tree until [`Ordered::resume`], because every key is deleted.
    pub(crate) fn suspend<M: Medium>(&self, disposal: Disposal<'_, M, D>) {
        self.builder.suspend(&self.tree, disposal);
    }

    pub(crate) fn resume(&self) {
        self.builder.resume(&self.queues);
    }

    /// Waits until every write that any thread could have read before the call is in the tree.
    pub(crate) fn catch_up<M: Medium>(&self, source: Source<'_, M, D>, early: Early) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        while self.tree.phase() != Phase::Ready {
            self.request()?;
            // A pinned thread keeps the build from starting, so it would wait for itself.
            if early == Early::Refuse || epoch::is_pinned() {
                return Err(self.not_ordered_yet());
            }
            if self.step(source)? == Progress::Idle {
                backoff.relax();
            }
        }
        for queue in self.queues.all() {
            let (tail, mut backoff) = (queue.ring.tail(), Backoff::long());
            while queue.ring.head() < tail && self.tree.phase() == Phase::Ready {
                if self.drain(source.disposal, queue)? == 0 {
                    backoff.relax();
                }
            }
        }
        Ok(())
    }

    pub(super) fn not_ordered_yet(&self) -> Error {
        let (done, total) = self.builder.progress();
        Error::NotOrderedYet { done, total }
    }

    /// Sets whether the caller's threads apply changes.
    pub(crate) fn leave_to_callers(&self, is_enabled: bool) {
        self.queues.leave_to_callers(is_enabled);
    }

    /// Returns the number of workers that should do a step.
    #[inline(always)]
    pub(crate) fn wanted(&self) -> WantedThreads {
        self.queues.wanted()
    }

    /// Returns the number of ordered keys, if there is a tree.
    pub(crate) fn key_count(&self) -> Option<u64> {
        self.tree.key_count()
    }

    /// Calls `each` with every item in key order, if there is a tree; returns their number.
    pub(crate) fn each_sorted<M: Medium>(&self, medium: &M, each: &mut dyn FnMut(Position)) -> Result<u64, Error> {
        self.tree.each_sorted(medium, each)
    }

    pub(crate) fn queue_stats(&self) -> QueueStats {
        let [applied_count, updated_count] = self.queues.applied();
        QueueStats { queued_count: self.queues.queued_count(), applied_count, updated_count }
    }

    /// Returns the statistics, if the store has order.
    pub(crate) fn stats(&self) -> Option<OrderStats> {
        if !self.is_offered() {
            return None;
        }
        let state = match self.tree.phase() {
            Phase::Ready => OrderState::Ready,
            _ if self.builder.is_at_work() => OrderState::Building,
            _ => OrderState::Off,
        };
        let (tree, (done, total)) = (self.tree.read(), self.builder.progress());
        let QueueStats { queued_count, applied_count, updated_count } = self.queue_stats();
        Some(OrderStats {
            state,
            done,
            total,
            queued_count,
            delta_count: self.tree.delta_count(),
            applied_count,
            updated_count,
            dram_bytes: tree.as_ref().map_or(0, BPlusTree::dram_bytes),
        })
    }
}
