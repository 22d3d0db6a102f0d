//! A bounded step of keeping order, for workers, for writers that find a queue full, and before a store is closed.

use std::sync::atomic::Ordering;

use pmem::{Backoff, Medium};

use super::ordered::Ordered;
use crate::{HiKv, Memory};
use engine::{Error, Progress, WantedThreads};

impl<D: Memory> Ordered<D> {
    /// Does a bounded piece of the work.
    pub(crate) fn step<M: Medium>(engine: &HiKv<M, D>) -> Result<Progress, Error> {
        let order = &engine.order;
        order.wanted.store(WantedThreads::None as u8, Ordering::Release);
        if order.build_step(engine)? == Progress::More {
            return Ok(Progress::More);
        }
        Ok(if order.drain_all(engine.disposal())? > 0 { Progress::More } else { Progress::Idle })
    }

    /// Makes space in the partition's full queue, or lets other threads run. The caller holds no lock, and no pin of
    /// its own.
    pub(crate) fn make_space<M: Medium>(
        engine: &HiKv<M, D>,
        partition: usize,
        backoff: &mut Backoff,
    ) -> Result<(), Error> {
        let order = &engine.order;
        order.ask(WantedThreads::All);
        if !Ordered::drain_partition(engine, partition)? && order.build_step(engine)? == Progress::Idle {
            // Another thread drains, or the next ticket's writer is not done yet.
            backoff.relax();
        }
        Ok(())
    }

    /// Applies a group of the changes in the partition's queue; returns false if that is not possible now. For callers
    /// that may be pinned.
    pub(crate) fn drain_partition<M: Medium>(engine: &HiKv<M, D>, partition: usize) -> Result<bool, Error> {
        let order = &engine.order;
        Ok(order.drain(engine.disposal(), order.queue(partition))? > 0)
    }

    /// Empties the queues and drops an unfinished build; returns false if changes are left. The caller ensures that no
    /// thread writes during the call.
    pub(crate) fn come_to_rest<M: Medium>(engine: &HiKv<M, D>) -> Result<bool, Error> {
        let order = &engine.order;
        order.give_up_build(engine.disposal());
        while order.queued_count() > 0 {
            if order.drain_all(engine.disposal())? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
