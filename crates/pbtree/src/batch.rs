//! Batches: several keys change in one step, for readers and for a crash.
//!
//! # Steps
//! 0. All lanes are taken, in ascending order: no writer runs, and none begins. Conditions are checked against the
//!    present values; no writer changes those before the batch does. A batch that changes nothing releases the lanes
//!    and waits until the values that it saw are durable. A batch that changes something need not: with a log it
//!    follows those values in the log, and in memory the values that a leaf shows are durable.
//! 1. New values are written and flushed. Absent keys are inserted as deleted keys, each by a separate change, which
//!    may split. *Crash: nothing has changed that a reader sees; there are chunks without references, and pairs that
//!    the next packing removes.*
//! 2. The leaves are locked exclusively, in the order of their keys, and stay locked. Readers hold no leaf while they
//!    wait, and no other writer runs, so no cycle of waits arises.
//! 3. One run holds the value words of all keys, in a log that is long enough. Order. *Before: unchanged.*
//! 4. The value words are stored and flushed. Order. *Undone, all of them.* Number; commit. *Done.*
//! 5. The replaced values are released; the leaves are unlocked; then the lanes.
//!
//! So a batch logs one word for each key, however many keys it inserts into a gap.

use core::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Dram, Medium, Offset, Span, Ticket};
use undo_log::Lane;

use crate::Error;
use crate::canary;
use crate::key;
use crate::layout::KEY_BYTES_MAX;
use crate::locks::{Mode, Patience};
use crate::node::Target;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;
use crate::word;
use crate::write::Change;

/// One key of a batch, with the tree's state for it while the batch runs.
pub struct BatchWrite<'a> {
    key: &'a [u8],
    checksum: u32,
    change: Change<'a>,
    /// The new value's word, once it is written; 0 for none.
    new: u64,
    /// The offsets of the key's value word and of its leaf, once the leaf is locked; null for an absent key that is
    /// not put.
    at: Offset,
    leaf: Offset,
    /// True if the leaf's lock is released with this key.
    holds: bool,
}

impl<'a> BatchWrite<'a> {
    /// Creates the change of `key`.
    #[must_use]
    pub fn new(key: &'a [u8], change: Change<'a>) -> BatchWrite<'a> {
        let checksum = key::checksum(key);
        BatchWrite { key, checksum, change, new: 0, at: Offset::NULL, leaf: Offset::NULL, holds: false }
    }

    fn is_put(&self) -> bool {
        self.change != Change::Delete
    }

    fn range(&self) -> Option<Span> {
        (!self.at.is_null()).then(|| self.at.span(8))
    }
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Changes several keys in one step. The keys are in ascending order and distinct, and no element of `writes` was
    /// used before. Before anything changes, `holds` is called with the number and the present value of each key in
    /// `asked`. If it returns false, nothing is changed, and that number is returned.
    ///
    /// # Errors
    /// As for [`Tree::write`].
    ///
    /// # Panics
    /// If the keys are not in order.
    pub fn batch(
        &self,
        agent: usize,
        asked: &[&[u8]],
        holds: &mut dyn FnMut(usize, Option<&Value<'_>>) -> bool,
        writes: &mut [BatchWrite<'_>],
    ) -> Result<Option<usize>, Error> {
        assert!(writes.is_sorted_by(|a, b| a.key < b.key), "a batch's keys are in order, each once");
        if let Some(write) = writes.iter().find(|write| write.key.len() > KEY_BYTES_MAX) {
            return Err(Error::KeyTooLong { len_bytes: write.key.len() });
        }
        let early = self.medium.breaks(canary::CONDITION_OUTSIDE_LANES);
        let mut unmet = if early { self.first_unmet(asked, holds)? } else { None };
        let ticket = self.without_writers(|lane| {
            if !early {
                unmet = self.first_unmet(asked, holds)?;
            }
            if unmet.is_some() || writes.is_empty() {
                return Ok(None);
            }
            let prepared = self.prepare(lane, agent, writes);
            let locked = prepared.and_then(|()| self.lock_leaves(writes));
            match locked {
                Ok(()) => Ok(Some(self.carry_out(lane, writes))),
                Err(error) => {
                    self.give_up(writes);
                    Err(error)
                }
            }
        })?;
        match ticket {
            Some(ticket) => self.acknowledge(ticket)?,
            None => asked.iter().try_for_each(|key| self.get(key, |_| ()).map(drop))?,
        }
        Ok(unmet)
    }

    /// Calls `holds` for each of these keys and returns the first for which it returns false. No writer runs.
    fn first_unmet(
        &self,
        asked: &[&[u8]],
        holds: &mut dyn FnMut(usize, Option<&Value<'_>>) -> bool,
    ) -> Result<Option<usize>, Error> {
        for (number, key) in asked.iter().enumerate() {
            let leaf = self.descend(Target::At(key), (0, Mode::Shared), Patience::Wait, |_, _| Ok(()))?;
            let checksum = key::checksum(key);
            let place = leaf.node.place_of(leaf.meta.count, (key, checksum))?;
            let value = place.map_or(Ok(None), |i| self.value_of(&leaf, i, checksum))?;
            if !holds(number, value.as_ref()) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Takes step 1 and makes the log long enough.
    fn prepare(&self, lane: &mut Lane<'_>, agent: usize, writes: &mut [BatchWrite<'_>]) -> Result<(), Error> {
        for write in &mut *writes {
            if let Change::Put(value) = write.change {
                let stamp = self.stamps.next(&self.medium, lane.index())?;
                let owner = self.owner(write.checksum);
                write.new = word::pointer(value.write(&self.medium, &self.heap, agent, (stamp, owner))?.publish());
            }
        }
        writes.iter().filter(|write| write.is_put()).try_for_each(|write| self.make_pair(lane, agent, write))?;
        let ranges = writes.iter().map(|write| write.at.span(8));
        Ok(lane.fit_log(&self.medium, &self.heap, undo_log::layout::ranges_bytes(ranges))?)
    }

    /// Ensures that a key has a pair, inserting it as a deleted key if necessary.
    fn make_pair(&self, lane: &mut Lane<'_>, agent: usize, write: &BatchWrite<'_>) -> Result<(), Error> {
        let &BatchWrite { key, checksum, .. } = write;
        loop {
            let leaf = self.descend(Target::At(key), (0, Mode::Exclusive), Patience::Wait, |_, _| Ok(()))?;
            match leaf.node.place_of(leaf.meta.count, (key, checksum))? {
                Ok(_) => return Ok(()),
                Err(i) if leaf.meta.count < self.order() => {
                    let chunk = key::write(&self.medium, &self.heap, agent, key)?.publish();
                    self.insert_pair((lane, checksum), leaf, i, (word::key_word(chunk, checksum), 0));
                    return Ok(());
                }
                Err(_) => drop(leaf),
            }
            self.make_space(lane, agent, key)?;
        }
    }

    /// Takes step 2.
    fn lock_leaves(&self, writes: &mut [BatchWrite<'_>]) -> Result<(), Error> {
        let mut next = 0;
        while next < writes.len() {
            let mut fence = None;
            let first = Target::At(writes[next].key);
            let leaf = self.descend(first, (0, Mode::Exclusive), Patience::Wait, |inner, child| {
                if child < inner.meta.count {
                    // No writer runs, so no separator is released before the batch has ended.
                    fence = Some(inner.node.key(child)?);
                }
                Ok(())
            })?;
            let is_of_leaf = |write: &BatchWrite<'_>| fence.is_none_or(|fence| write.key < fence);
            let count = writes[next..].iter().take_while(|write| is_of_leaf(write)).count();
            for write in &mut writes[next..next + count] {
                write.leaf = leaf.node.at;
                if let Ok(i) = leaf.node.place_of(leaf.meta.count, (write.key, write.checksum))? {
                    write.at = leaf.node.value_at(i);
                }
            }
            next += count;
            writes[next - 1].holds = true;
            leaf.held.keep();
        }
        Ok(())
    }

    /// Takes steps 3 to 5.
    fn carry_out(&self, lane: &mut Lane<'_>, writes: &mut [BatchWrite<'_>]) -> Ticket {
        let logged = if self.medium.breaks(canary::BATCH_HALF_LOGGED) { writes.len() / 2 } else { writes.len() };
        // SAFETY: the leaves are locked exclusively.
        unsafe { lane.log_each(&self.medium, writes[..logged].iter().filter_map(BatchWrite::range)) };
        for write in writes.iter_mut().filter(|write| !write.at.is_null()) {
            let old = self.medium.load(write.at, Ordering::Relaxed);
            if !write.is_put() {
                self.count_vacated(1);
            }
            self.medium.store(write.at, write.new, Ordering::Release);
            self.medium.flush(write.at.span(8));
            write.new = old;
        }
        let ticket = lane.finish(&self.medium);
        writes.iter().for_each(|write| self.unsettled.note(write.checksum, ticket));
        self.free_values(writes);
        self.unlock_leaves(writes, Some(ticket));
        // A long log is freed; if that fails, it stays.
        let _: Result<(), HeapError> = lane.fit_log(&self.medium, &self.heap, 0);
        ticket
    }

    /// Undoes the preparation: frees the new values and unlocks the locked leaves. Nothing was changed.
    fn give_up(&self, writes: &[BatchWrite<'_>]) {
        self.free_values(writes);
        self.unlock_leaves(writes, None);
    }

    /// Releases the values without a reference: those that were replaced, or those that were never stored in a leaf.
    fn free_values(&self, writes: &[BatchWrite<'_>]) {
        for write in writes.iter().filter(|write| write.new != 0) {
            if let Ok(place) = word::place(write.at, write.new) {
                self.let_go(place);
            }
        }
    }

    fn unlock_leaves(&self, writes: &[BatchWrite<'_>], ticket: Option<Ticket>) {
        for write in writes.iter().filter(|write| write.holds) {
            if let Ok(lock) = self.locks.of(write.leaf) {
                lock.let_go(ticket);
            }
        }
    }
}
