//! Operations that use records up: loading, inserting, deleting. A pass ends when there are none left.

use hikv::Error;
use hikv::pool::Kind;

use super::{Seat, Stream};
use crate::client::Client;
use crate::records::fresh;
use crate::shuffle::Shuffle;
use crate::subject::Subject;

/// Puts this thread's share of the records to be loaded.
pub(crate) struct Load<'a, S> {
    client: Client<'a, S>,
    seat: Seat<'a, S>,
    done: u64,
}

impl<'a, S: Subject> Load<'a, S> {
    /// Nothing is loaded yet.
    pub(crate) fn new(seat: Seat<'a, S>) -> Load<'a, S> {
        Load { client: seat.client(), seat, done: 0 }
    }
}

impl<S: Subject> Stream for Load<'_, S> {
    fn step(&mut self) -> Result<u64, Error> {
        if self.done == self.seat.share(self.seat.shape.records) {
            return Ok(0);
        }
        self.client.put(self.seat.nth(self.done))?;
        self.done += 1;
        Ok(1)
    }

    fn kind(&self) -> Kind {
        Kind::Write
    }

    fn errors(&self) -> u64 {
        self.client.errors
    }
}

/// Adds new records. Each pass may add as many as were loaded, so that memory stays bounded.
pub(crate) struct Insert<'a, S> {
    client: Client<'a, S>,
    thread: usize,
    pass_max: u64,
    limit: u64,
    done: u64,
}

impl<'a, S: Subject> Insert<'a, S> {
    /// On the loaded records.
    pub(crate) fn new(seat: &Seat<'a, S>) -> Insert<'a, S> {
        let pass_max = seat.share(seat.shape.records);
        Insert { client: seat.client(), thread: seat.thread, pass_max, limit: pass_max, done: 0 }
    }
}

impl<S: Subject> Stream for Insert<'_, S> {
    fn step(&mut self) -> Result<u64, Error> {
        if self.done == self.limit {
            return Ok(0);
        }
        self.client.put(fresh(self.thread, self.done))?;
        self.done += 1;
        Ok(1)
    }

    fn kind(&self) -> Kind {
        Kind::Write
    }

    fn errors(&self) -> u64 {
        self.client.errors
    }

    /// Goes on where the last pass ended: the store still grows, rather than filling what was freed.
    fn rewind(&mut self) -> Result<(), Error> {
        self.limit = self.done + self.pass_max;
        Ok(())
    }

    fn restore(&mut self) -> Result<(), Error> {
        (0..self.done).try_for_each(|number| self.client.delete(fresh(self.thread, number)))
    }
}

/// Removes loaded records in random order, each once.
pub(crate) struct Delete<'a, S> {
    client: Client<'a, S>,
    seat: Seat<'a, S>,
    order: Shuffle,
    done: u64,
}

impl<'a, S: Subject> Delete<'a, S> {
    /// Nothing is deleted yet.
    pub(crate) fn new(seat: Seat<'a, S>) -> Delete<'a, S> {
        Delete { client: seat.client(), order: Shuffle::new(seat.shape.records), seat, done: 0 }
    }

    fn victim(&self, number: u64) -> u64 {
        self.order.at(self.seat.nth(number))
    }
}

impl<S: Subject> Stream for Delete<'_, S> {
    fn step(&mut self) -> Result<u64, Error> {
        if self.done == self.seat.share(self.seat.shape.records) {
            return Ok(0);
        }
        self.client.delete(self.victim(self.done))?;
        self.done += 1;
        Ok(1)
    }

    fn kind(&self) -> Kind {
        Kind::Write
    }

    fn errors(&self) -> u64 {
        self.client.errors
    }

    fn rewind(&mut self) -> Result<(), Error> {
        (0..self.done).try_for_each(|number| self.client.put(self.victim(number)))?;
        self.done = 0;
        Ok(())
    }

    fn restore(&mut self) -> Result<(), Error> {
        self.rewind()
    }
}
