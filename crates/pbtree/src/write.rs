//! Writing a key: found, decided and changed under its leaf's lock.

use heap::Reservation;
use pmem::{Dram, Medium, Ticket};

use crate::Error;
use crate::canary;
use crate::key;
use crate::locks::Mode;
use crate::nodes::Reached;
use crate::retire::Retire;
use crate::value::{NewValue, Value};
use crate::word;
use crate::writer::Writer;

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

/// The write of one key by the holder of a lane.
pub(crate) struct Write<'w, 't, M: Medium, D: Dram, R> {
    writer: Writer<'t, M, D, R>,
    key: &'w [u8],
    /// The key's checksum.
    checksum: u32,
    change: Change<'w>,
    /// The new value's chunk, once it is written.
    chunk: Option<Reservation<'t, D>>,
}

/// Decides about a write by the key's present value.
pub(crate) type Allowed<'a> = &'a mut dyn FnMut(Option<&Value<'_>>) -> bool;

impl<'w, 't, M: Medium, D: Dram, R: Retire<M, D>> Write<'w, 't, M, D, R> {
    /// Returns the write of a key that is not too long.
    #[inline]
    pub(crate) fn new(writer: Writer<'t, M, D, R>, key: &'w [u8], change: Change<'w>) -> Write<'w, 't, M, D, R> {
        Write { writer, key, checksum: key::checksum(key), change, chunk: None }
    }

    /// Changes the key if `allowed` returns true.
    pub(crate) fn run(mut self, allowed: Allowed<'_>) -> Result<Written, Error> {
        if let Change::Put(value) = self.change
            && !self.writer.may_fit_over(&value)
        {
            self.chunk = Some(self.writer.write_value(self.checksum, &value)?);
        }
        loop {
            let leaf = self.writer.nodes().leaf_of(self.key, Mode::Exclusive)?;
            let lock = leaf.held.lock();
            if let Some((written, ticket)) = self.attempt(leaf, allowed)? {
                let (unsettled, medium) = (self.writer.reader().unsettled(), self.writer.medium());
                drop(self);
                let waited = if written.is_done { medium.acknowledge(ticket) } else { medium.acknowledge_met(ticket) };
                unsettled.settle(lock, ticket, waited?);
                return Ok(written);
            }
            self.writer.make_space(self.key)?;
        }
    }

    /// Returns the answer and the ticket to wait for, or nothing because the leaf is full.
    fn attempt(&mut self, leaf: Reached<'_, M>, allowed: Allowed<'_>) -> Result<Option<(Written, Ticket)>, Error> {
        let place = leaf.node.place_of(leaf.meta.count, (self.key, self.checksum))?;
        let old = place.map_or(Ok(None), |i| self.writer.reader().value_of(&leaf, i, self.checksum))?;
        let (was_there, is_done) = (old.is_some(), allowed(old.as_ref()));
        let ticket = match (self.change, place, old) {
            _ if !is_done => Some(leaf.held.ticket()),
            (Change::Put(value), place, old) => self.put(leaf, &value, place, old)?,
            (Change::Delete, Ok(i), Some(old)) => {
                Some(self.writer.set_value(self.checksum, leaf, i, 0, Some(old.place)))
            }
            (Change::Delete, ..) => Some(leaf.held.ticket()),
        };
        Ok(ticket.map(|ticket| (Written { was_there, is_done }, ticket)))
    }

    /// Puts a value at the key's position. Returns `None` if the leaf has no space.
    fn put(
        &mut self,
        leaf: Reached<'_, M>,
        value: &NewValue<'_>,
        place: Result<usize, usize>,
        old: Option<Value<'_>>,
    ) -> Result<Option<Ticket>, Error> {
        if let Some(old) = old.filter(|old| self.writer.fits_over(value, old)) {
            return self.writer.write_over(self.checksum, leaf, value, old.place.offset).map(Some);
        }
        if self.chunk.is_none() {
            self.chunk = Some(self.writer.write_value(self.checksum, value)?);
        }
        let (leaf, i) = match place {
            Ok(i) => {
                let chunk = self.chunk.take().expect("it was just written").publish();
                self.writer.medium().order_unless(canary::ITEM_NOT_ORDERED);
                let old = old.map(|old| old.place);
                return Ok(Some(self.writer.set_value(self.checksum, leaf, i, word::pointer(chunk), old)));
            }
            Err(i) if leaf.meta.count < self.writer.nodes().order() => (leaf, i),
            Err(_) => {
                let Some(leaf) = self.writer.pack(leaf)? else { return Ok(None) };
                let i = leaf.node.gap_for(leaf.meta.count, self.key)?;
                (leaf, i)
            }
        };
        // As in the crate's table: the key's chunk; the run, which orders both chunks; the pairs; the number.
        let key = word::key_word(self.writer.write_key(self.key)?.publish(), self.checksum);
        let value = self.chunk.take().expect("it was just written").publish();
        Ok(Some(self.writer.insert(self.checksum, leaf, i, (key, word::pointer(value)))))
    }
}
