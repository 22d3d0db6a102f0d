//! Workloads of one system: operations are drawn before the clock starts, then timed.

use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::system::{System, Updated};
use crate::Error;
use crate::point::{Accesses, Point};
use crate::records::{Popularity, is_value_of, key, value};

/// A turn inserts and removes one record for this many slots.
const INSERTED_OF: u64 = 100;
/// Numbers of records that never exist.
const ABSENT: u64 = 1 << 40;

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Workload {
    /// Reads of existing keys.
    Positive,
    /// Reads of absent keys.
    Negative,
    Update,
    /// Inserts of new keys, followed by deletes of the same keys as a separate point.
    InsertDelete,
    /// Puts of new keys, which look for the key first; then the keys are deleted.
    Put,
    /// YCSB with this percentage of reads; the other operations are updates.
    Ycsb(&'static str, u32),
}

/// All workloads, in the order in which they are measured.
pub(super) const ALL: [Workload; 8] = [
    Workload::Positive,
    Workload::Negative,
    Workload::Update,
    Workload::InsertDelete,
    Workload::Put,
    Workload::Ycsb("ycsb-a", 50),
    Workload::Ycsb("ycsb-b", 95),
    Workload::Ycsb("ycsb-c", 100),
];

impl Workload {
    pub(super) fn name(self) -> &'static str {
        match self {
            Workload::Positive => "positive",
            Workload::Negative => "negative",
            Workload::Update => "update",
            Workload::InsertDelete => "insert",
            Workload::Put => "put",
            Workload::Ycsb(name, _) => name,
        }
    }
}

/// A system and its contents.
pub(super) struct Bench {
    pub(super) name: &'static str,
    system: Box<dyn System>,
    /// The records that it holds.
    loaded: Vec<u32>,
    /// The first record that was not offered yet.
    next: u32,
    version: u32,
    wrong: u64,
}

/// An operation and its record.
struct Operation {
    record: u32,
    is_read: bool,
}

/// The result of timed operations.
struct Measured {
    operations: u64,
    ns: f64,
    accesses: Accesses,
    wrong: u64,
    refused: u64,
}

/// Adds a new key to a system; returns false if there is no space.
type Add = fn(&dyn System, &[u8], &[u8]) -> Result<bool, Error>;

impl Bench {
    pub(super) fn new(name: &'static str, system: Box<dyn System>) -> Bench {
        Bench { name, system, loaded: Vec::new(), next: 0, version: 0, wrong: 0 }
    }

    /// Inserts until this share of the usable slots is used; skips records that find no space.
    pub(super) fn fill(&mut self, load: f64) -> Result<(), Error> {
        let wanted = (self.system.usable_slot_count() as f64 * load) as usize;
        let offered_max = self.next as usize + 2 * wanted;
        while self.loaded.len() < wanted {
            let record = self.next;
            self.next += 1;
            if self.system.insert(&key(record.into()), &value(record.into(), 0))? {
                self.loaded.push(record);
            } else if self.next as usize > offered_max {
                return Err(format!("{} cannot be filled to {load}", self.name).into());
            }
        }
        Ok(())
    }

    /// Inserts until a record finds no space; returns the load of all slots, and the accesses of an insert.
    pub(super) fn fill_up(&mut self) -> Result<Point, Error> {
        let filled = self.timed(|bench| {
            let before = bench.loaded.len();
            while bench.system.insert(&key(bench.next.into()), &value(bench.next.into(), 0))? {
                bench.loaded.push(bench.next);
                bench.next += 1;
            }
            Ok([(bench.loaded.len() - before) as u64, 1])
        })?;
        let load = self.loaded.len() as f64 / self.system.slot_count() as f64;
        let Measured { operations, ns, accesses, wrong, refused } = filled;
        let accesses = Some(accesses);
        Ok(Point { operations, ns, accesses, wrong, refused, ..Point::of("full", self.name, load, 0) })
    }

    /// Runs a turn; returns its points.
    pub(super) fn turn(
        &mut self,
        workload: Workload,
        load: f64,
        round: usize,
        count: usize,
    ) -> Result<Vec<Point>, Error> {
        let (mut rng, system) = (SmallRng::seed_from_u64(round as u64), self.name);
        self.system.catch_up()?;
        let point = |workload, Measured { operations, ns, accesses, wrong, refused }| Point {
            workload,
            system,
            at: load,
            round,
            operations,
            ns,
            wrong,
            refused,
            accesses: Some(accesses),
        };
        match workload {
            Workload::InsertDelete => {
                let [inserted, deleted] =
                    self.add_and_delete(2 + 2 * round as u64, |system, key, value| system.insert(key, value))?;
                Ok(vec![point("insert", inserted), point("delete", deleted)])
            }
            Workload::Put => {
                let [put, _] =
                    self.add_and_delete(3 + 2 * round as u64, |system, key, value| system.put(key, value))?;
                Ok(vec![point("put", put)])
            }
            _ => {
                let operations = self.draw(workload, &mut rng, count);
                let measured = self.measure(&operations, workload == Workload::Negative)?;
                Ok(vec![point(workload.name(), measured)])
            }
        }
    }

    fn draw(&self, workload: Workload, rng: &mut SmallRng, count: usize) -> Vec<Operation> {
        let loaded = self.loaded.len() as u64;
        let popularity = Popularity::of(loaded);
        let draw = |_| {
            let any = rng.random_range(0..loaded);
            let number = match workload {
                Workload::Ycsb(..) => popularity.record(rng),
                _ => any,
            };
            let is_read = match workload {
                Workload::Ycsb(_, read_percent) => rng.random_range(0..100) < read_percent,
                workload => workload != Workload::Update,
            };
            Operation { record: self.loaded[number as usize], is_read }
        };
        (0..count).map(draw).collect()
    }

    /// Times `work`, which returns how many operations it carried out, and how many were refused.
    fn timed(&mut self, work: impl FnOnce(&mut Bench) -> Result<[u64; 2], Error>) -> Result<Measured, Error> {
        let (start, before, wrong) = (Instant::now(), self.system.counted(), self.wrong);
        let [operations, refused] = work(self)?;
        let ns = start.elapsed().as_nanos() as f64 / operations.max(1) as f64;
        let accesses = self.system.counted().per_operation(before, operations);
        Ok(Measured { operations, ns, accesses, wrong: self.wrong - wrong, refused })
    }

    fn measure(&mut self, operations: &[Operation], is_absent: bool) -> Result<Measured, Error> {
        self.timed(|bench| {
            let mut refused = 0;
            for operation in operations {
                let record = u64::from(operation.record) + if is_absent { ABSENT } else { 0 };
                if operation.is_read {
                    bench.read(record, !is_absent)?;
                } else {
                    bench.version += 1;
                    match bench.system.update(&key(record), &value(record, bench.version))? {
                        Updated::Done => {}
                        Updated::Absent => bench.wrong += 1,
                        Updated::NoSpace => refused += 1,
                    }
                }
            }
            Ok([operations.len() as u64 - refused, refused])
        })
    }

    #[inline(always)]
    fn read(&mut self, record: u64, is_expected: bool) -> Result<(), Error> {
        let mut is_right = false;
        let is_there = self.system.get(&key(record), &mut |found| is_right = is_value_of(record, found))?;
        self.wrong += u64::from(is_there != is_expected || is_there && !is_right);
        Ok(())
    }

    /// Adds new records and deletes them again. Those that were refused count in the time of the others. Turns with
    /// another `series` add other records, whose slots have not just become free.
    fn add_and_delete(&mut self, series: u64, add: Add) -> Result<[Measured; 2], Error> {
        let first = ABSENT * series + u64::from(self.next);
        let records: Vec<u64> = (first..first + (self.system.slot_count() / INSERTED_OF).max(1)).collect();
        let mut added = Vec::with_capacity(records.len());
        let mut adding = self.timed(|bench| {
            for record in &records {
                if add(&*bench.system, &key(*record), &value(*record, 0))? {
                    added.push(*record);
                }
            }
            Ok([added.len() as u64, (records.len() - added.len()) as u64])
        })?;
        let before = self.wrong;
        added.iter().try_for_each(|record| self.read(*record, true))?;
        adding.wrong += self.wrong - before;
        let mut deleting = self.timed(|bench| {
            for record in &added {
                bench.wrong += u64::from(!bench.system.delete(&key(*record))?);
            }
            Ok([added.len() as u64, 0])
        })?;
        let before = self.wrong;
        added.iter().try_for_each(|record| self.read(*record, false))?;
        deleting.wrong += self.wrong - before;
        Ok([adding, deleting])
    }
}
