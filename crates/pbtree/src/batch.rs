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

use pmem::{Dram, Medium, Offset, Span, Ticket};

use crate::Error;
use crate::canary;
use crate::key;
use crate::locks::{Mode, WaitPolicy};
use crate::nodes::Target;
use crate::read::{Absence, Reader, check_key};
use crate::retire::Retire;
use crate::space::Space;
use crate::value::Value;
use crate::word;
use crate::write::Change;
use crate::writer::{Writer, Writers};

/// Decides by the number and the present value of a key that was asked for.
type Holds<'a> = &'a mut dyn FnMut(usize, Option<&Value<'_>>) -> bool;

/// One key of a batch, with the tree's state for it while the batch runs.
pub struct BatchWrite<'a> {
    key: &'a [u8],
    checksum: u32,
    change: Change<'a>,
    /// The new value's word, once it is written; the old one's after the batch. 0 for none.
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

    /// Returns true if the key had a value before the batch. Meaningful after the batch was carried out.
    #[must_use]
    pub fn was_present(&self) -> bool {
        self.new != 0
    }

    fn is_put(&self) -> bool {
        self.change != Change::Delete
    }

    fn range(&self) -> Option<Span> {
        (!self.at.is_null()).then(|| self.at.span(8))
    }
}

/// Changes the keys of `writes`, as [`Tree::batch`](crate::Tree::batch) describes.
pub(crate) fn run<M: Medium, D: Dram, R: Retire<M, D>>(
    reader: &Reader<M, D>,
    space: &Space<D, R>,
    writers: &Writers<D>,
    agent: usize,
    asked: &[&[u8]],
    holds: Holds<'_>,
    writes: &mut [BatchWrite<'_>],
) -> Result<Option<usize>, Error> {
    assert!(writes.is_sorted_by(|a, b| a.key < b.key), "a batch's keys are in order, each once");
    writes.iter().try_for_each(|write| check_key(write.key))?;
    let medium = reader.nodes().medium();
    let early = medium.breaks(canary::CONDITION_OUTSIDE_LANES);
    let mut unmet = if early { first_unmet(reader, asked, holds)? } else { None };
    let ticket = writers.exclude(|lane| {
        if !early {
            unmet = first_unmet(reader, asked, holds)?;
        }
        if unmet.is_some() || writes.is_empty() {
            return Ok(None);
        }
        Batch { writer: Writer::new(reader, space, writers, agent, lane), writes }.run().map(Some)
    })?;
    match ticket {
        Some(ticket) => reader.unsettled().acknowledge(medium, ticket)?,
        None => {
            asked.iter().try_for_each(|key| reader.get(key, WaitPolicy::Wait, Absence::Assumed, |_| ()).map(drop))?
        }
    }
    Ok(unmet)
}

/// Calls `holds` for each of these keys and returns the first for which it returns false. No writer runs.
fn first_unmet<M: Medium, D: Dram>(
    reader: &Reader<M, D>,
    asked: &[&[u8]],
    holds: Holds<'_>,
) -> Result<Option<usize>, Error> {
    for (number, key) in asked.iter().enumerate() {
        let leaf = reader.nodes().leaf_of(key, Mode::Shared)?;
        let checksum = key::checksum(key);
        let place = leaf.node.place_of(leaf.meta.count, (key, checksum))?;
        let value = place.map_or(Ok(None), |i| reader.value_of(&leaf, i, checksum))?;
        if !holds(number, value.as_ref()) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// A batch whose conditions hold, with all lanes taken.
struct Batch<'b, 'w, 't, M: Medium, D: Dram, R> {
    writer: Writer<'t, M, D, R>,
    writes: &'b mut [BatchWrite<'w>],
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Batch<'_, '_, '_, M, D, R> {
    fn run(mut self) -> Result<Ticket, Error> {
        match self.prepare().and_then(|()| self.lock_leaves()) {
            Ok(()) => Ok(self.carry_out()),
            Err(error) => {
                // Undoes the preparation; nothing was changed.
                self.free_values();
                self.unlock_leaves(None);
                Err(error)
            }
        }
    }

    /// Takes step 1 and makes the log long enough.
    fn prepare(&mut self) -> Result<(), Error> {
        let Batch { writer, writes } = self;
        for write in &mut **writes {
            if let Change::Put(value) = write.change {
                write.new = word::pointer(writer.write_value(write.checksum, &value)?.publish());
            }
        }
        writes.iter().filter(|write| write.is_put()).try_for_each(|write| make_pair(writer, write))?;
        writer.fit_log(undo_log::layout::ranges_bytes(writes.iter().map(|write| write.at.span(8))))
    }

    /// Takes step 2.
    fn lock_leaves(&mut self) -> Result<(), Error> {
        let Batch { writer, writes } = self;
        let mut next = 0;
        while next < writes.len() {
            let mut fence = None;
            let first = Target::At(writes[next].key);
            let leaf = writer.nodes().descend(first, (0, Mode::Exclusive), WaitPolicy::Wait, |inner, child| {
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
    fn carry_out(&mut self) -> Ticket {
        let Batch { writer, writes } = self;
        let medium = writer.medium();
        let logged = if medium.breaks(canary::BATCH_HALF_LOGGED) { writes.len() / 2 } else { writes.len() };
        // SAFETY: the leaves are locked exclusively.
        unsafe { writer.lane().log_each(medium, writes[..logged].iter().filter_map(BatchWrite::range)) };
        for write in writes.iter_mut().filter(|write| !write.at.is_null()) {
            let old = medium.load(write.at, Ordering::Relaxed);
            if !write.is_put() {
                writer.shared().vacate(1);
            }
            medium.store(write.at, write.new, Ordering::Release);
            medium.flush(write.at.span(8));
            write.new = old;
        }
        let ticket = writer.lane().finish(medium);
        writes.iter().for_each(|write| writer.reader().unsettled().note(write.checksum, ticket));
        self.free_values();
        self.unlock_leaves(Some(ticket));
        // A long log is freed; if that fails, it stays.
        let _ = self.writer.fit_log(0);
        ticket
    }

    /// Releases the values without a reference: those that were replaced, or those that were never stored in a leaf.
    fn free_values(&self) {
        for write in self.writes.iter().filter(|write| write.new != 0) {
            if let Ok(place) = word::place(write.at, write.new) {
                self.writer.let_go(place);
            }
        }
    }

    fn unlock_leaves(&self, ticket: Option<Ticket>) {
        for write in self.writes.iter().filter(|write| write.holds) {
            if let Ok(lock) = self.writer.nodes().lock_of(write.leaf) {
                lock.let_go(ticket);
            }
        }
    }
}

/// Ensures that a key has a pair, inserting it as a deleted key if necessary.
fn make_pair<M: Medium, D: Dram, R: Retire<M, D>>(
    writer: &mut Writer<'_, M, D, R>,
    &BatchWrite { key, checksum, .. }: &BatchWrite<'_>,
) -> Result<(), Error> {
    loop {
        let leaf = writer.nodes().leaf_of(key, Mode::Exclusive)?;
        match leaf.node.place_of(leaf.meta.count, (key, checksum))? {
            Ok(_) => return Ok(()),
            Err(i) if leaf.meta.count < writer.nodes().order() => {
                let chunk = writer.write_key(key)?.publish();
                writer.insert(checksum, leaf, i, (word::key_word(chunk, checksum), 0));
                return Ok(());
            }
            Err(_) => drop(leaf),
        }
        writer.make_space(key)?;
    }
}
