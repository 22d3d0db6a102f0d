//! YCSB's core workloads over single keys.

use hikv::Error;
use rand::RngExt;

use super::{Seat, Stream};
use crate::client::Client;
use crate::distribution::{Ranks, Scrambled};
use crate::records::fresh;
use crate::subject::Subject;

/// What is done beside reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Update,
    Insert,
    ReadThenUpdate,
}

/// The shares of a workload's operations.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    read_percent: u32,
    other: Other,
}

impl Mix {
    pub(crate) const A: Mix = Mix { read_percent: 50, other: Other::Update };
    pub(crate) const B: Mix = Mix { read_percent: 95, other: Other::Update };
    pub(crate) const C: Mix = Mix { read_percent: 100, other: Other::Update };
    pub(crate) const D: Mix = Mix { read_percent: 95, other: Other::Insert };
    pub(crate) const F: Mix = Mix { read_percent: 50, other: Other::ReadThenUpdate };
}

/// Reads mixed with one other kind of operation.
pub(crate) struct Ycsb<'a, S> {
    client: Client<'a, S>,
    mix: Mix,
    thread: usize,
    popular: Scrambled,
    latest: Ranks,
    inserted: u64,
}

impl<'a, S: Subject> Ycsb<'a, S> {
    /// On the loaded records, with a skew of its own.
    pub(crate) fn new(seat: &Seat<'a, S>, mix: Mix) -> Ycsb<'a, S> {
        let records = seat.shape.records;
        Ycsb {
            client: seat.client(),
            mix,
            thread: seat.thread,
            popular: Scrambled::new(records),
            latest: Ranks::new(records),
            inserted: 0,
        }
    }

    fn next_record(&mut self) -> u64 {
        match self.mix.other {
            Other::Insert => self.recent(),
            Other::Update | Other::ReadThenUpdate => self.popular.sample(&mut self.client.rng),
        }
    }

    /// The newest records are the most popular: what this thread inserted, then what was loaded.
    fn recent(&mut self) -> u64 {
        let age = self.latest.sample(&mut self.client.rng);
        match self.inserted.checked_sub(age + 1) {
            Some(number) => fresh(self.thread, number),
            None => self.client.shape.records - 1 - (age - self.inserted),
        }
    }

    fn insert(&mut self) -> Result<(), Error> {
        self.client.put(fresh(self.thread, self.inserted))?;
        self.inserted += 1;
        Ok(())
    }
}

impl<S: Subject> Stream for Ycsb<'_, S> {
    fn step(&mut self) -> Result<u64, Error> {
        let reads = self.client.rng.random_range(0..100) < self.mix.read_percent;
        if !reads && self.mix.other == Other::Insert {
            return self.insert().map(|()| 1);
        }
        let record = self.next_record();
        if reads || self.mix.other == Other::ReadThenUpdate {
            self.client.get_into(record)?;
        }
        if !reads {
            self.client.put(record)?;
        }
        Ok(1)
    }

    fn errors(&self) -> u64 {
        self.client.errors
    }

    fn restore(&mut self) -> Result<(), Error> {
        (0..self.inserted).try_for_each(|number| self.client.delete(fresh(self.thread, number)))
    }
}
