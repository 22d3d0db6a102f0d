//! Workloads of one system: operations are drawn before the clock starts, then timed.

use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::System;
use crate::Error;
use crate::point::Point;
use crate::records::{is_value_of, key, value};

/// YCSB's skew.
const SKEW: f64 = 0.99;
/// Scatters popular records among all.
const SCATTER: u64 = 0x9E37_79B1;
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
    /// Inserts, followed by deletes of the same keys as a separate point.
    InsertDelete,
    /// YCSB with this percentage of reads; the other operations are updates.
    Ycsb(&'static str, u32),
}

/// All workloads, in the order in which they are measured.
pub(super) const ALL: [Workload; 7] = [
    Workload::Positive,
    Workload::Negative,
    Workload::Update,
    Workload::InsertDelete,
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

impl Bench {
    pub(super) fn new(name: &'static str, system: Box<dyn System>) -> Bench {
        Bench { name, system, loaded: Vec::new(), next: 0, version: 0, wrong: 0 }
    }

    /// Inserts until this share of the slots is used; skips records that find no space.
    pub(super) fn fill(&mut self, load: f64) -> Result<(), Error> {
        let wanted = (self.system.slot_count() as f64 * load) as usize;
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

    /// Runs a turn; returns its points.
    pub(super) fn turn(
        &mut self,
        workload: Workload,
        load: f64,
        round: usize,
        count: usize,
    ) -> Result<Vec<Point>, Error> {
        let (mut rng, system) = (SmallRng::seed_from_u64(round as u64), self.name);
        let point = |workload, (operations, ns, wrong, refused)| Point {
            workload,
            system,
            at: load,
            round,
            operations,
            ns,
            wrong,
            refused,
        };
        if workload == Workload::InsertDelete {
            let [inserted, deleted] = self.insert_and_delete()?;
            return Ok(vec![point("insert", inserted), point("delete", deleted)]);
        }
        let operations = self.draw(workload, &mut rng, count);
        let measured = self.measure(&operations, workload == Workload::Negative)?;
        Ok(vec![point(workload.name(), measured)])
    }

    fn draw(&self, workload: Workload, rng: &mut SmallRng, count: usize) -> Vec<Operation> {
        let loaded = self.loaded.len() as u64;
        let ranks = Zipf::new(loaded as f64, SKEW).expect("there are records, and a skew");
        let draw = |_| {
            let any = rng.random_range(0..loaded);
            let number = match workload {
                Workload::Ycsb(..) => (ranks.sample(rng) as u64).wrapping_mul(SCATTER) % loaded,
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

    /// Returns the number of operations, the time of one, wrong results, and refused inserts.
    fn measure(&mut self, operations: &[Operation], is_absent: bool) -> Result<(u64, f64, u64, u64), Error> {
        let (start, before) = (Instant::now(), self.wrong);
        for operation in operations {
            let record = u64::from(operation.record) + if is_absent { ABSENT } else { 0 };
            if operation.is_read {
                self.read(record, !is_absent)?;
            } else {
                self.version += 1;
                let is_there = self.system.update(&key(record), &value(record, self.version))?;
                self.wrong += u64::from(!is_there);
            }
        }
        let count = operations.len() as u64;
        Ok((count, start.elapsed().as_nanos() as f64 / count as f64, self.wrong - before, 0))
    }

    #[inline(always)]
    fn read(&mut self, record: u64, is_expected: bool) -> Result<(), Error> {
        let mut is_right = false;
        let is_there = self.system.get(&key(record), &mut |found| is_right = is_value_of(record, found))?;
        self.wrong += u64::from(is_there != is_expected || is_there && !is_right);
        Ok(())
    }

    fn insert_and_delete(&mut self) -> Result<[(u64, f64, u64, u64); 2], Error> {
        let first = ABSENT * 2 + u64::from(self.next);
        let records: Vec<u64> = (first..first + (self.system.slot_count() / INSERTED_OF).max(1)).collect();
        let mut is_inserted = Vec::with_capacity(records.len());
        let start = Instant::now();
        for record in &records {
            is_inserted.push(self.system.insert(&key(*record), &value(*record, 0))?);
        }
        let insert_ns = start.elapsed().as_nanos() as f64;
        let inserted: Vec<u64> =
            records.iter().zip(&is_inserted).filter(|(_, is)| **is).map(|(record, _)| *record).collect();
        let before = self.wrong;
        inserted.iter().try_for_each(|record| self.read(*record, true))?;
        let insert_wrong = self.wrong - before;
        let start = Instant::now();
        for record in &inserted {
            self.wrong += u64::from(!self.system.delete(&key(*record))?);
        }
        let delete_ns = start.elapsed().as_nanos() as f64;
        inserted.iter().try_for_each(|record| self.read(*record, false))?;
        let (count, delete_wrong) = (inserted.len() as u64, self.wrong - before - insert_wrong);
        let refused = records.len() as u64 - count;
        let of_one = |ns: f64| ns / count.max(1) as f64;
        Ok([(count, of_one(insert_ns), insert_wrong, refused), (count, of_one(delete_ns), delete_wrong, 0)])
    }
}
