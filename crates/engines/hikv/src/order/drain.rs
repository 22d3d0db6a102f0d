//! Applies the changes in the queues.
//!
//! 1. The next changes are copied out.
//! 2. They are applied to the tree, or noted in the delta.
//! 3. The replaced items are retired; those of the delta when it is merged.
//! 4. The queue's head advances. A scan that has waited for 4 sees 2.

use std::sync::atomic::Ordering;

use arrayvec::ArrayVec;
use index::bplus_tree::{self as tree, BPlusTree, ChangeError, Edit, KeyStart};
use pmem::{Dram, Medium};

use super::change::{Change, GROUP_COUNT, Group, INLINE_BYTES};
use super::items::Items;
use super::ordered::{Ordered, Phase, Queue};
use super::ring::CHANGE_WORDS;
use crate::Memory;
use crate::canary;
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
        if single_count == 0 || !self.apply_or_fall(disposal, &group, insist) {
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
        if !self.apply_or_fall(disposal, &group, insist) {
            return 0;
        }
        queue.applied.add(&group);
        if queue.many.advance(number, group.len()) {
            queue.ring.advance(1);
        }
        group.len()
    }

    /// Does steps 2 and 3, or drops the tree; returns false if the delta is full.
    fn apply_or_fall<M: Medium>(&self, disposal: Disposal<'_, M, D>, group: &Group, insist: bool) -> bool {
        self.apply(disposal, group, insist).unwrap_or_else(|error| {
            self.fall_with(disposal, group, error);
            true
        })
    }

    /// As [`Ordered::drain`], for the first queue from which this thread can apply anything; each call begins at
    /// another queue.
    pub(super) fn drain_one<M: Medium>(&self, disposal: Disposal<'_, M, D>) -> Result<usize, Error> {
        let (first, queues) = (self.next_queue.fetch_add(1, Ordering::Relaxed), &self.queues);
        for number in 0..queues.len() {
            let count = self.drain(disposal, &queues[first.wrapping_add(number) % queues.len()])?;
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(0)
    }

    /// As [`Ordered::drain`], once for each queue.
    pub(super) fn drain_all<M: Medium>(&self, disposal: Disposal<'_, M, D>) -> Result<usize, Error> {
        self.queues.iter().map(|queue| self.drain(disposal, queue)).sum()
    }

    /// Does steps 2 and 3; returns false if the delta is full.
    fn apply<M: Medium>(&self, disposal: Disposal<'_, M, D>, group: &Group, insist: bool) -> Result<bool, Error> {
        let tree = self.tree.read();
        match (&*tree, self.phase()) {
            (Some(tree), _) => apply(tree, disposal.medium, group)?,
            (None, Phase::Building) if !disposal.medium.breaks(canary::CHANGE_MISSES_DELTA) => {
                return Ok(self.delta.push(group, insist));
            }
            (None, _) => {}
        }
        drop(tree);
        group.iter().for_each(|change| disposal.retire(change.old));
        Ok(true)
    }

    /// Drops the tree: it did not take a change, because memory is short or an item is damaged. Scans return the error;
    /// the next request for order builds the tree again.
    #[cold]
    fn fall_with<M: Medium>(&self, disposal: Disposal<'_, M, D>, group: &Group, error: Error) {
        self.abort_tree(disposal, error);
        group.iter().for_each(|change| disposal.retire(change.old));
    }
}

/// Applies a group to the tree.
fn apply<M: Medium, D: Dram>(tree: &BPlusTree<D>, medium: &M, group: &Group) -> Result<(), Error> {
    let changes: ArrayVec<_, GROUP_COUNT> = group.iter().map(tree_change).collect();
    let mut result = Ok(());
    tree.apply(&Items(medium), &changes, |number, applied| {
        if let Err(error) = applied {
            result = Err(failure(error, &group[number]));
        }
    });
    result
}

/// Returns the change in the tree's form.
pub(super) fn tree_change(change: &Change) -> tree::Change<'_> {
    let edit = match (change.old, change.new) {
        (None, Some(new)) => Edit::Insert(new),
        (Some(old), Some(new)) => Edit::Replace { old, new },
        (Some(old), None) => Edit::Remove(old),
        (None, None) => unreachable!("an empty change does not leave the queue"),
    };
    let key = change.key().map_or_else(|| KeyStart::new(change.head(), INLINE_BYTES + 1), KeyStart::whole);
    tree::Change { key, edit }
}

pub(super) fn failure(error: ChangeError<Error>, change: &Change) -> Error {
    let position = change.new.or(change.old).map_or(0, |position| position.offset().0);
    match error {
        ChangeError::Keys(error) => error,
        ChangeError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
        ChangeError::Exists(_) => {
            Error::Corrupt { offset: position, what: "a new key is already in the ordered index" }
        }
        ChangeError::Missing(_) => {
            Error::Corrupt { offset: position, what: "a changed key is not in the ordered index" }
        }
    }
}
