//! YCSB's core workloads.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::steady::scan;
use super::{Act, Draw, Draws};
use crate::distribution::{Ranks, Scrambled};
use crate::worker::Worker;

/// The kind of operation of which at least half consist.
#[derive(Clone, Copy)]
enum Read {
    /// Reads of popular records.
    Popular,
    /// Reads of the newest records.
    Recent,
    /// Scans beginning at popular records.
    Scan,
}

/// The other operations of a workload.
#[derive(Clone, Copy)]
enum Other {
    Update,
    Insert,
    ReadThenUpdate,
}

/// The shares of a workload's operations.
#[derive(Clone, Copy)]
pub(super) struct Mix {
    read_percent: u32,
    read: Read,
    other: Other,
}

impl Mix {
    pub(super) const A: Mix = Mix { read_percent: 50, read: Read::Popular, other: Other::Update };
    pub(super) const B: Mix = Mix { read_percent: 95, read: Read::Popular, other: Other::Update };
    pub(super) const C: Mix = Mix { read_percent: 100, read: Read::Popular, other: Other::Update };
    pub(super) const D: Mix = Mix { read_percent: 95, read: Read::Recent, other: Other::Insert };
    pub(super) const E: Mix = Mix { read_percent: 95, read: Read::Scan, other: Other::Insert };
    pub(super) const F: Mix = Mix { read_percent: 50, read: Read::Popular, other: Other::ReadThenUpdate };
}

/// Reads mixed with one other kind of operation.
pub(super) struct Ycsb {
    mix: Mix,
    worker: Worker,
    popular: Scrambled,
    latest: Ranks,
    /// Records that this thread adds; one that was drawn before a read of it exists when the read runs.
    inserted: u64,
}

impl Ycsb {
    /// Draws from the loaded records, with its own skew.
    pub(super) fn new(mix: Mix, worker: &Worker) -> Ycsb {
        let records = worker.records.count;
        Ycsb { mix, worker: *worker, popular: Scrambled::new(records), latest: Ranks::new(records), inserted: 0 }
    }

    /// Draws a recent record. The newest are the most popular: first those that this thread inserted, then the loaded
    /// ones.
    fn recent(&self, rng: &mut SmallRng) -> u64 {
        let age = self.latest.sample(rng);
        match self.inserted.checked_sub(age + 1) {
            Some(number) => self.worker.fresh(number),
            None => self.worker.records.count - 1 - (age - self.inserted),
        }
    }

    fn read(&self, rng: &mut SmallRng) -> Draw {
        match self.mix.read {
            Read::Popular => Draw { act: Act::GetInto, record: self.popular.sample(rng) },
            Read::Recent => Draw { act: Act::GetInto, record: self.recent(rng) },
            Read::Scan => Draw { record: self.popular.sample(rng), act: scan(rng) },
        }
    }

    fn insert(&mut self) -> Draw {
        self.inserted += 1;
        Draw { act: Act::Insert, record: self.worker.fresh(self.inserted - 1) }
    }
}

impl Draws for Ycsb {
    fn draw(&mut self, rng: &mut SmallRng) -> Option<Draw> {
        let reads = rng.random_range(0..100) < self.mix.read_percent;
        Some(match self.mix.other {
            _ if reads => self.read(rng),
            Other::Insert => self.insert(),
            Other::Update => Draw { act: Act::Update, record: self.popular.sample(rng) },
            Other::ReadThenUpdate => Draw { act: Act::ReadThenUpdate, record: self.popular.sample(rng) },
        })
    }
}
