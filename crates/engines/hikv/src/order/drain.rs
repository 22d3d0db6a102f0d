//! Applies the changes in the queues.
//!
//! 1. The next changes are copied out.
//! 2. They are applied to the tree, or noted in the delta.
//! 3. The replaced items are retired; those of the delta when it is merged.
//! 4. The queue's head advances. A scan that has waited for 4 sees 2.

use pmem::Medium;

use super::change::{Change, GROUP_COUNT, Group};
use super::ordered::Ordered;
use super::queues::Queue;
use super::ring::CHANGE_WORDS;
use crate::memory::Memory;
use crate::snapshots::Disposal;
use engine::Error;

impl<D: Memory> Ordered<D> {
    /// Applies the next changes of `queue`; returns their number. It is 0 if another thread drains the queue, if the
    /// next ticket is not filled yet, or if the delta is full.
    pub(super) fn drain<M: Medium>(&self, disposal: Disposal<'_, M, D>, queue: &Queue) -> Result<usize, Error> {
        let insist = epoch::is_pinned();
        let Some(_drainer) = queue.drainer.try_lock() else {
            return Ok(0);
        };
        let _pin = epoch::pin();
        let mut words = [[0; CHANGE_WORDS]; GROUP_COUNT];
        let count = queue.ring.peek(&mut words);
        let single_count = words[..count].iter().take_while(|words| **words != Change::MANY).count();
        if count > 0 && single_count == 0 {
            return Ok(self.drain_many(disposal, queue, insist));
        }
        let group: Group = words[..single_count].iter().filter_map(|words| Change::from_words(*words)).collect();
        if single_count == 0 || !self.apply_or_discard(disposal, &group, insist) {
            return Ok(0);
        }
        queue.applied.add(&group);
        queue.ring.advance(single_count);
        Ok(single_count)
    }

    /// Does the same for the next changes of a batch; the queue's head advances after the last of them.
    fn drain_many<M: Medium>(&self, disposal: Disposal<'_, M, D>, queue: &Queue, insist: bool) -> usize {
        let number = queue.ring.head();
        let group = queue.many.next(number);
        if !self.apply_or_discard(disposal, &group, insist) {
            return 0;
        }
        queue.applied.add(&group);
        if queue.many.advance(number, group.len()) {
            queue.ring.advance(1);
        }
        group.len()
    }

    /// Does steps 2 and 3, or drops the tree; returns false if the delta is full.
    fn apply_or_discard<M: Medium>(&self, disposal: Disposal<'_, M, D>, group: &Group, insist: bool) -> bool {
        self.tree.apply(disposal, group, insist).unwrap_or_else(|error| {
            self.fall_with(disposal, group, error);
            true
        })
    }

    /// As [`Ordered::drain`], for the first queue from which this thread can apply anything; each call begins at
    /// another queue.
    pub(crate) fn drain_one<M: Medium>(&self, disposal: Disposal<'_, M, D>) -> Result<usize, Error> {
        for queue in self.queues.all_in_turn() {
            let count = self.drain(disposal, queue)?;
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(0)
    }

    /// As [`Ordered::drain`], once for each queue.
    pub(super) fn drain_all<M: Medium>(&self, disposal: Disposal<'_, M, D>) -> Result<usize, Error> {
        self.queues.all().iter().map(|queue| self.drain(disposal, queue)).sum()
    }

    /// Drops the tree: it did not take a change, because memory is short or an item is damaged. Scans return the error;
    /// the next request for order builds the tree again.
    #[cold]
    fn fall_with<M: Medium>(&self, disposal: Disposal<'_, M, D>, group: &Group, error: Error) {
        self.builder.abort_tree(&self.tree, disposal, error);
        group.iter().for_each(|change| disposal.retire(change.old));
    }
}
