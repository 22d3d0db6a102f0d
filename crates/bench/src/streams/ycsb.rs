//! YCSB's core workloads.

use hikv::Error;
use hikv::pool::Kind;
use rand::RngExt;

use super::{Seat, Stream};
use crate::client::Client;
use crate::distribution::{Ranks, Scrambled};
use crate::records::fresh;
use crate::scans::Scans;
use crate::subject::Subject;

/// What most operations, or at least half of them, are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// Reads of popular records.
    Popular,
    /// Reads of the newest records.
    Recent,
    /// Scans from popular records on.
    Scan,
}

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
    read: Read,
    other: Other,
}

impl Mix {
    pub(crate) const A: Mix = Mix { read_percent: 50, read: Read::Popular, other: Other::Update };
    pub(crate) const B: Mix = Mix { read_percent: 95, read: Read::Popular, other: Other::Update };
    pub(crate) const C: Mix = Mix { read_percent: 100, read: Read::Popular, other: Other::Update };
    pub(crate) const D: Mix = Mix { read_percent: 95, read: Read::Recent, other: Other::Insert };
    pub(crate) const E: Mix = Mix { read_percent: 95, read: Read::Scan, other: Other::Insert };
    pub(crate) const F: Mix = Mix { read_percent: 50, read: Read::Popular, other: Other::ReadThenUpdate };
}

/// Reads mixed with one other kind of operation.
pub(crate) struct Ycsb<'a, S> {
    client: Client<'a, S>,
    mix: Mix,
    thread: usize,
    kind: Kind,
    popular: Scrambled,
    latest: Ranks,
    /// Where the mix has scans.
    scans: Option<Scans>,
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
            kind: Kind::Get,
            popular: Scrambled::new(records),
            latest: Ranks::new(records),
            scans: (mix.read == Read::Scan).then(|| Scans::new(seat.shape)),
            inserted: 0,
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

    fn read(&mut self) -> Result<u64, Error> {
        let record = match self.mix.read {
            Read::Recent => self.recent(),
            Read::Popular | Read::Scan => self.popular.sample(&mut self.client.rng),
        };
        match &mut self.scans {
            Some(scans) => self.client.scan(record, scans)?,
            None => self.client.get_into(record)?,
        }
        Ok(record)
    }

    fn update(&mut self) -> Result<(), Error> {
        let record = self.popular.sample(&mut self.client.rng);
        self.client.put(record)
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
        self.kind = match self.mix.read {
            _ if !reads => Kind::Write,
            Read::Scan => Kind::Scan,
            Read::Popular | Read::Recent => Kind::Get,
        };
        match self.mix.other {
            _ if reads => self.read().map(drop)?,
            Other::Insert => self.insert()?,
            Other::Update => self.update()?,
            Other::ReadThenUpdate => {
                let record = self.read()?;
                self.client.put(record)?;
            }
        }
        Ok(1)
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn errors(&self) -> u64 {
        self.client.errors
    }

    fn restore(&mut self) -> Result<(), Error> {
        (0..self.inserted).try_for_each(|number| self.client.delete(fresh(self.thread, number)))
    }
}
