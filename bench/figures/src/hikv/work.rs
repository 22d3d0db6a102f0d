//! The workloads: operations are drawn before the clock starts, then timed on one or more threads.

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::services::Sampled;
use super::system::System;
use crate::Error;
use crate::model::Shares;
use crate::point::Accesses;
use crate::records::{self, KEY_BYTES, Popularity, Shape};

/// Scans read fewer pairs than this.
const SCANNED_MAX: u64 = 100;
/// A scan stands for this many single operations, so that its turn takes about as long.
const SCAN_SHARE: usize = 20;

/// A mix of YCSB, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mix {
    gets: u32,
    updates: u32,
    inserts: u32,
    scans: u32,
    /// Gets choose the newest keys most often.
    is_latest: bool,
}

impl Mix {
    /// Returns the shares of writes, scans and changes.
    pub(super) fn shares(self) -> Shares {
        let Mix { gets, updates, inserts, scans, .. } = self;
        Shares { writes: updates + inserts, scans, changes: 100 - gets - updates - inserts - scans }
    }
}

const NO_MIX: Mix = Mix { gets: 0, updates: 0, inserts: 0, scans: 0, is_latest: false };

/// The number of YCSB's workloads.
pub(super) const MIX_COUNT: usize = 6;

/// YCSB's workloads A to F. The rest of F are reads that are followed by an update of the same key.
pub(super) const YCSB: [(&str, Mix); MIX_COUNT] = [
    ("ycsb-a", Mix { gets: 50, updates: 50, ..NO_MIX }),
    ("ycsb-b", Mix { gets: 95, updates: 5, ..NO_MIX }),
    ("ycsb-c", Mix { gets: 100, ..NO_MIX }),
    ("ycsb-d", Mix { gets: 95, inserts: 5, is_latest: true, ..NO_MIX }),
    ("ycsb-e", Mix { inserts: 5, scans: 95, ..NO_MIX }),
    ("ycsb-f", Mix { gets: 50, ..NO_MIX }),
];

/// The operations of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Gets of keys that exist, chosen uniformly.
    Get,
    /// Scans of 1 to 99 pairs, from keys chosen uniformly.
    Scan,
    /// Puts of new keys.
    Put,
    /// Puts of keys that exist, chosen uniformly.
    Update,
    /// Deletes of the keys that puts have added since the last deletes.
    Delete,
    Ycsb(Mix),
}

impl Work {
    pub(super) fn writes(self) -> bool {
        match self {
            Work::Get | Work::Scan => false,
            Work::Put | Work::Update | Work::Delete => true,
            Work::Ycsb(mix) => mix.gets + mix.scans < 100,
        }
    }
}

/// An operation on a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Get(u64),
    /// A put of this version.
    Put(u64, u32),
    /// A get, and then a put of this version.
    Change(u64, u32),
    Delete(u64),
    /// A scan from a record, of this many pairs.
    Scan(u64, u64),
}

/// The result of a turn.
pub(super) struct Measured {
    pub(super) operations: u64,
    /// From the first thread's start to the last one's end.
    pub(super) elapsed_ns: f64,
    pub(super) wrong: u64,
    pub(super) accesses: Accesses,
}

/// A store and its contents.
pub(super) struct Bench {
    pub(super) name: &'static str,
    pub(super) system: Box<dyn System>,
    shape: Shape,
    /// The records with smaller numbers exist.
    record_count: u64,
    /// The records from `record_count` on that also exist.
    added_count: u64,
    version: u32,
}

impl Bench {
    /// Takes a store that holds the records below `record_count`.
    pub(super) fn of(name: &'static str, system: Box<dyn System>, shape: Shape, record_count: u64) -> Bench {
        Bench { name, system, shape, record_count, added_count: 0, version: 0 }
    }

    pub(super) fn record_count(&self) -> u64 {
        self.record_count
    }

    /// Ends the workloads; returns the number of records that exist.
    pub(super) fn end(mut self) -> Result<u64, Error> {
        self.delete_added()?;
        self.system.settle()?;
        Ok(self.record_count)
    }

    /// Deletes the keys that puts have added, so that the existing records have consecutive numbers.
    fn delete_added(&mut self) -> Result<(), Error> {
        let added = self.record_count..self.record_count + self.added_count;
        self.added_count = 0;
        perform(&*self.system, self.shape, &added.map(Operation::Delete).collect::<Vec<_>>()).map(drop)
    }

    /// Puts all records into a new store.
    pub(super) fn load(&self) -> Result<(), Error> {
        let all: Vec<_> = (0..self.record_count).map(|record| Operation::Put(record, 0)).collect();
        perform(&*self.system, self.shape, &all)?;
        self.system.settle()
    }

    /// Makes each of the threads run about `count` operations.
    pub(super) fn turn(&mut self, work: Work, thread_count: u64, count: usize, seed: u64) -> Result<Measured, Error> {
        if matches!(work, Work::Ycsb(_)) {
            self.delete_added()?;
        }
        let mut rng = SmallRng::seed_from_u64(seed);
        let drawn = self.draw(work, thread_count, count, &mut rng);
        self.system.settle()?;
        let before = self.system.counted();
        let (elapsed_ns, wrong) = self.perform_together(&drawn)?;
        let operations = drawn.iter().map(Vec::len).sum::<usize>() as u64;
        let accesses = self.system.counted().per_operation(before, operations);
        Ok(Measured { operations, elapsed_ns, wrong, accesses })
    }

    /// Times each of about `count` operations of a mix on one thread.
    pub(super) fn sample(&mut self, mix: Mix, count: usize, seed: u64) -> Result<Sampled, Error> {
        self.version += 1;
        let existing = self.record_count;
        let operations = self.mixed(mix, existing, count, &mut SmallRng::seed_from_u64(seed));
        self.system.settle()?;
        Sampled::run(&*self.system, self.shape, &operations)
    }

    fn draw(&mut self, work: Work, thread_count: u64, count: usize, rng: &mut SmallRng) -> Vec<Vec<Operation>> {
        let threads = 0..thread_count;
        match work {
            Work::Get => threads.map(|_| self.uniform(count, rng, |record, _| Operation::Get(record))).collect(),
            Work::Scan => {
                let scan = |record, rng: &mut SmallRng| Operation::Scan(record, rng.random_range(1..SCANNED_MAX));
                threads.map(|_| self.uniform(count.div_ceil(SCAN_SHARE), rng, scan)).collect()
            }
            Work::Update => {
                self.version += 1;
                let version = self.version;
                threads.map(|_| self.uniform(count, rng, |record, _| Operation::Put(record, version))).collect()
            }
            Work::Put => {
                let first = self.record_count + self.added_count;
                self.added_count += thread_count * count as u64;
                let of_thread = |thread| first + thread * count as u64..first + (thread + 1) * count as u64;
                threads.map(|thread| of_thread(thread).map(|record| Operation::Put(record, 0)).collect()).collect()
            }
            Work::Delete => {
                let added = self.record_count..self.record_count + self.added_count;
                self.added_count = 0;
                let deletes: Vec<_> = added.map(Operation::Delete).collect();
                deletes.chunks(deletes.len().div_ceil(thread_count as usize).max(1)).map(<[_]>::to_vec).collect()
            }
            Work::Ycsb(mix) => {
                self.version += 1;
                // No thread reads what another one inserts.
                let existing = self.record_count;
                threads.map(|_| self.mixed(mix, existing, count, rng)).collect()
            }
        }
    }

    fn uniform(
        &self,
        count: usize,
        rng: &mut SmallRng,
        operation: impl Fn(u64, &mut SmallRng) -> Operation,
    ) -> Vec<Operation> {
        let draw = |_| {
            let record = rng.random_range(0..self.record_count);
            operation(record, rng)
        };
        (0..count).map(draw).collect()
    }

    fn mixed(&mut self, mix: Mix, existing: u64, count: usize, rng: &mut SmallRng) -> Vec<Operation> {
        let popularity = Popularity::of(existing);
        let draw = |_| {
            let record = match mix.is_latest {
                true => existing - popularity.rank(rng).min(existing),
                false => popularity.record(rng),
            };
            let kind = rng.random_range(0..100);
            if kind < mix.gets {
                Operation::Get(record)
            } else if kind < mix.gets + mix.updates {
                Operation::Put(record, self.version)
            } else if kind < mix.gets + mix.updates + mix.inserts {
                self.record_count += 1;
                Operation::Put(self.record_count - 1, 0)
            } else if kind < mix.gets + mix.updates + mix.inserts + mix.scans {
                Operation::Scan(record, rng.random_range(1..SCANNED_MAX))
            } else {
                Operation::Change(record, self.version)
            }
        };
        let count = if mix.scans > 0 { count.div_ceil(SCAN_SHARE) } else { count };
        (0..count).map(draw).collect()
    }

    /// Returns the time, and the number of wrong results.
    fn perform_together(&self, drawn: &[Vec<Operation>]) -> Result<(f64, u64), Error> {
        let (system, shape, barrier) = (&*self.system, self.shape, Barrier::new(drawn.len()));
        let run = |operations: &[Operation]| {
            barrier.wait();
            let start = Instant::now();
            let wrong = perform(system, shape, operations)?;
            Ok::<_, Error>((start, Instant::now(), wrong))
        };
        let done: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = drawn.iter().map(|operations| scope.spawn(|| run(operations))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect::<Result<_, Error>>()
        })?;
        let start = done.iter().map(|(start, ..)| *start).min();
        let end = done.iter().map(|(_, end, _)| *end).max();
        let elapsed = start.zip(end).map_or(0.0, |(start, end)| (end - start).as_nanos() as f64);
        Ok((elapsed, done.iter().map(|(_, _, wrong)| wrong).sum()))
    }
}

/// Carries out operations; returns the number of wrong results.
fn perform(system: &dyn System, shape: Shape, operations: &[Operation]) -> Result<u64, Error> {
    let (mut wrong, mut value) = (0, shape.buffer());
    for &operation in operations {
        wrong += u64::from(!once(system, shape, &mut value, operation)?);
    }
    Ok(wrong)
}

/// Carries out an operation; returns false if its result was wrong.
#[inline(always)]
pub(super) fn once(system: &dyn System, shape: Shape, value: &mut [u8], operation: Operation) -> Result<bool, Error> {
    match operation {
        Operation::Get(record) => is_right(system, shape, record),
        Operation::Put(record, version) => put(system, shape, value, record, version),
        Operation::Change(record, version) => {
            let is_right = is_right(system, shape, record)?;
            Ok(put(system, shape, value, record, version)? && is_right)
        }
        Operation::Delete(record) => system.delete(&records::key(record)),
        Operation::Scan(record, count) => is_scan_right(system, shape, record, count),
    }
}

fn put(system: &dyn System, shape: Shape, value: &mut [u8], record: u64, version: u32) -> Result<bool, Error> {
    shape.fill(value, record, version);
    system.put(&records::key(record), value)?;
    Ok(true)
}

fn is_right(system: &dyn System, shape: Shape, record: u64) -> Result<bool, Error> {
    let mut is_right = false;
    let mut found = |value: &[u8]| is_right = shape.is_value_of(record, value);
    Ok(system.get(&records::key(record), &mut found)? && is_right)
}

/// Reads `count` pairs from an existing record's key on: the first is that record, and the keys ascend.
fn is_scan_right(system: &dyn System, shape: Shape, record: u64, count: u64) -> Result<bool, Error> {
    let from = records::key(record);
    let (mut last, mut is_right, mut seen) = (None::<[u8; KEY_BYTES]>, true, 0);
    system.scan(&from, &mut |key, value| {
        let key: Option<[u8; KEY_BYTES]> = key.try_into().ok();
        is_right &= match last {
            None => key == Some(from) && shape.is_value_of(record, value),
            Some(_) => key > last,
        };
        (last, seen) = (key, seen + 1);
        if seen < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(is_right && last.is_some())
}
