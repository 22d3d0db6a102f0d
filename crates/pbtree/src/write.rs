//! Writing a key: found, decided and changed under its leaf's lock.

use heap::Reservation;
use pmem::{Dram, Medium, Ticket, Waited};
use undo_log::Lane;

use crate::Error;
use crate::descent::Reached;
use crate::key;
use crate::layout::KEY_BYTES_MAX;
use crate::locks::{Held, Mode, NodeLock, Patience};
use crate::node::{Meta, Target};
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::{NewValue, Value};
use crate::word;

/// The change of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// The key gets this value.
    Put(NewValue<'a>),
    /// The key is removed.
    Delete,
}

/// The result of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// True if the key existed.
    pub was_there: bool,
    /// True if the write was allowed, and so happened.
    pub is_done: bool,
}

/// The state of a write.
struct Write<'w, 't, D: Dram> {
    key: &'w [u8],
    /// The key's checksum.
    checksum: u32,
    change: Change<'w>,
    agent: usize,
    lane: Lane<'t>,
    /// The new value's chunk, once it is written.
    chunk: Option<Reservation<'t, D>>,
}

impl<'t, D: Dram> Write<'_, 't, D> {
    fn changing(&mut self) -> Changing<'_, 't> {
        (&mut self.lane, self.checksum)
    }
}

/// The lane that changes a key, and the key's checksum.
pub(crate) type Changing<'a, 't> = (&'a mut Lane<'t>, u32);

/// The result of an attempt: an answer and the ticket to wait for, or nothing because the leaf is full.
type Attempt = Option<(Written, Ticket)>;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Changes a key if `allowed` returns true for its present value. `allowed` may be called more than once, and
    /// runs under the leaf's lock. Threads with different `agent`s do not contend for lanes and allocator. The
    /// change, or the value that `allowed` saw, is durable when this returns.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`]; [`Error::Heap`] if there is no space; [`Error::Damaged`].
    pub fn write(
        &self,
        agent: usize,
        key: &[u8],
        change: Change<'_>,
        allowed: &mut dyn FnMut(Option<&Value<'_>>) -> bool,
    ) -> Result<Written, Error> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { len_bytes: key.len() });
        }
        let (checksum, lane) = (key::checksum(key), self.lanes.take(agent));
        let mut write = Write { key, checksum, change, agent, lane, chunk: None };
        if let Change::Put(value) = &change
            && !self.may_fit_over(value)
        {
            self.write_value(&mut write, value)?;
        }
        loop {
            let leaf = self.descend(Target::At(key), (0, Mode::Exclusive), Patience::Wait, |_, _| Ok(()))?;
            let lock = leaf.held.lock();
            if let Some((written, ticket)) = self.attempt(&mut write, leaf, allowed)? {
                drop(write);
                self.wait_for(lock, written, ticket)?;
                return Ok(written);
            }
            self.make_space(&mut write.lane, agent, key)?;
        }
    }

    fn wait_for(&self, lock: &NodeLock, written: Written, ticket: Ticket) -> Result<(), Error> {
        let waited =
            if written.is_done { self.medium.acknowledge(ticket) } else { self.medium.acknowledge_met(ticket) };
        if waited? == Waited::Durable {
            self.settle(lock, ticket);
        }
        Ok(())
    }

    /// Writes the new value into a new chunk, once.
    fn write_value<'t>(&'t self, write: &mut Write<'_, 't, D>, value: &NewValue<'_>) -> Result<(), Error> {
        if write.chunk.is_none() {
            let stamp = self.stamps.next(&self.medium, write.lane.index())?;
            let owner = self.owner(write.checksum);
            write.chunk = Some(value.write(&self.medium, &self.heap, write.agent, (stamp, owner))?);
        }
        Ok(())
    }

    fn attempt<'t>(
        &'t self,
        write: &mut Write<'_, 't, D>,
        leaf: Reached<'_, M>,
        allowed: &mut dyn FnMut(Option<&Value<'_>>) -> bool,
    ) -> Result<Attempt, Error> {
        let place = leaf.node.place_of(leaf.meta.count, (write.key, write.checksum))?;
        let old = place.map_or(Ok(None), |i| self.value_of(&leaf, i, write.checksum))?;
        let (was_there, is_done) = (old.is_some(), allowed(old.as_ref()));
        let ticket = match write.change {
            _ if !is_done => Some(leaf.held.ticket()),
            Change::Put(value) => self.put(write, leaf, &value, place, old)?,
            Change::Delete => Some(self.delete(write, leaf, place, old)),
        };
        Ok(ticket.map(|ticket| (Written { was_there, is_done }, ticket)))
    }

    fn delete(
        &self,
        write: &mut Write<'_, '_, D>,
        leaf: Reached<'_, M>,
        place: Result<usize, usize>,
        old: Option<Value<'_>>,
    ) -> Ticket {
        match (place, old) {
            (Ok(i), Some(old)) => self.set_value(write.changing(), leaf, i, 0, Some(old.place)),
            _ => leaf.held.ticket(),
        }
    }

    /// Puts a value at the key's position. Returns `None` if the leaf has no space.
    fn put<'t>(
        &'t self,
        write: &mut Write<'_, 't, D>,
        leaf: Reached<'_, M>,
        value: &NewValue<'_>,
        place: Result<usize, usize>,
        old: Option<Value<'_>>,
    ) -> Result<Option<Ticket>, Error> {
        if let Some(old) = old.filter(|old| self.fits_over(value, old)) {
            let stamp = self.stamps.next(&self.medium, write.lane.index())?;
            return Ok(Some(self.write_over(write.changing(), leaf, value, (old.place.offset, stamp))));
        }
        self.write_value(write, value)?;
        match place {
            Ok(i) => {
                let chunk = write.chunk.take().expect("it was just written").publish();
                self.order_chunks();
                Ok(Some(self.set_value(write.changing(), leaf, i, word::pointer(chunk), old.map(|old| old.place))))
            }
            Err(i) if leaf.meta.count < self.order() => self.insert(write, leaf, i).map(Some),
            Err(_) => match self.pack(&mut write.lane, leaf)? {
                Some(leaf) => {
                    let i = leaf.node.gap_for(leaf.meta.count, write.key)?;
                    self.insert(write, leaf, i).map(Some)
                }
                None => Ok(None),
            },
        }
    }

    /// Inserts the key at `i` of a leaf that has space.
    ///
    /// # Steps
    /// As in the crate's table: the key's chunk; the run, which orders both chunks; the pairs; the number.
    fn insert(&self, write: &mut Write<'_, '_, D>, leaf: Reached<'_, M>, i: usize) -> Result<Ticket, Error> {
        let key = key::write(&self.medium, &self.heap, write.agent, write.key)?;
        let key_word = word::key_word(key.publish(), write.checksum);
        let value_chunk = write.chunk.take().expect("a put has written its value");
        Ok(self.insert_pair(write.changing(), leaf, i, (key_word, word::pointer(value_chunk.publish()))))
    }

    /// Inserts a pair, whose chunks are flushed, at `i` of a leaf that has space.
    pub(crate) fn insert_pair(
        &self,
        (lane, checksum): Changing<'_, '_>,
        leaf: Reached<'_, M>,
        i: usize,
        pair: (u64, u64),
    ) -> Ticket {
        let Meta { level, count } = leaf.meta;
        if i == count {
            return self.append((lane, checksum), leaf, pair);
        }
        let node = leaf.node;
        // SAFETY: the leaf is locked exclusively.
        unsafe { lane.log(&self.medium, &[node.meta_span(), node.pairs(i, count)]) };
        node.insert_pair(i, count, pair);
        node.set_meta(Meta { level, count: count + 1 });
        self.medium.flush(node.pairs(i, count + 1));
        self.medium.flush(node.meta_span());
        let ticket = lane.finish(&self.medium);
        self.committed(&leaf.held, checksum, ticket);
        ticket
    }

    /// Records the commit that every later reader of the node, or of the key with this checksum, must wait for.
    pub(crate) fn committed(&self, held: &Held<'_>, checksum: u32, ticket: Ticket) {
        self.unsettled.note(checksum, ticket);
        held.committed(ticket);
    }
}
