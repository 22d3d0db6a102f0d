//! Workloads of one system: what is drawn before the clock starts, and what is timed.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::records::{is_value_of, key, value};
use super::system::System;
use crate::Error;

/// YCSB's skew.
const SKEW: f64 = 0.99;
/// Scatters popular records over all.
const SCATTER: u64 = 0x9E37_79B1;
/// A turn of inserts adds one pair for so many that are there.
const INSERTED_OF: u64 = 20;

/// What threads do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Reads of keys that are there, some far more often than others.
    Read,
    /// New values of such keys.
    Update,
    /// New keys.
    Insert,
    /// YCSB: so many reads in a hundred operations; the others are updates.
    Ycsb { read_percent: u32, is_skewed: bool },
}

/// What a turn took.
pub(super) struct Measured {
    pub(super) operations: u64,
    /// From the first thread's start to the last one's end.
    pub(super) elapsed: Duration,
    /// For each thread how long each lap took.
    pub(super) laps: Vec<Vec<Duration>>,
    pub(super) wrong: u64,
}

/// One operation on a record: a read, or a put of this version.
struct Operation {
    record: u64,
    put: Option<u32>,
}

/// A system, and what it holds.
pub(super) struct Bench {
    pub(super) name: &'static str,
    system: Box<dyn System>,
    /// Records that are there: those below.
    record_count: u64,
    version: u32,
}

impl Bench {
    /// The system, with so many records.
    pub(super) fn load(name: &'static str, system: Box<dyn System>, record_count: u64) -> Result<Bench, Error> {
        (0..record_count).try_for_each(|record| system.put(&key(record), &value(record, 0)))?;
        Ok(Bench { name, system, record_count, version: 0 })
    }

    /// Has each of some threads do `count` operations (inserts: what [`INSERTED_OF`] says, together), with a look at the clock after
    /// every `lap`.
    pub(super) fn turn(
        &mut self,
        work: Work,
        (thread_count, count, lap): (usize, usize, usize),
        seed: u64,
    ) -> Result<Measured, Error> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let drawn: Vec<Vec<Operation>> = (0..thread_count)
            .map(|_| match work {
                Work::Insert => self.draw_new(thread_count as u64),
                _ => self.draw(work, count, &mut rng),
            })
            .collect();
        let (system, barrier) = (&*self.system, &Barrier::new(thread_count));
        let joined: Vec<Result<(Vec<Instant>, u64), Error>> = thread::scope(|scope| {
            let perform = |operations| {
                move || {
                    barrier.wait();
                    perform(system, operations, lap)
                }
            };
            let threads: Vec<_> = drawn.iter().map(|operations| scope.spawn(perform(operations))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread that measures does not panic")).collect()
        });
        let done: Vec<(Vec<Instant>, u64)> = joined.into_iter().collect::<Result<_, Error>>()?;
        let mut wrong = done.iter().map(|(_, wrong)| wrong).sum();
        if work == Work::Insert {
            for operation in drawn.iter().flatten() {
                wrong += u64::from(!is_right(system, operation.record)?);
            }
        }
        let first = done.iter().filter_map(|(times, _)| times.first()).min().expect("a thread has begun");
        let last = done.iter().filter_map(|(times, _)| times.last()).max().expect("a thread has ended");
        let laps = done.iter().map(|(times, _)| times.windows(2).map(|pair| pair[1] - pair[0]).collect());
        let operations = drawn.iter().map(|operations| operations.len() as u64).sum();
        Ok(Measured { operations, elapsed: *last - *first, laps: laps.collect(), wrong })
    }

    fn next_version(&mut self) -> u32 {
        self.version += 1;
        self.version
    }

    /// A thread's share of new records.
    fn draw_new(&mut self, thread_count: u64) -> Vec<Operation> {
        let count = (self.record_count / INSERTED_OF / thread_count).max(1);
        let new = self.record_count..self.record_count + count;
        self.record_count = new.end;
        new.map(|record| Operation { record, put: Some(0) }).collect()
    }

    fn draw(&mut self, work: Work, count: usize, rng: &mut SmallRng) -> Vec<Operation> {
        let ranks = Zipf::new(self.record_count as f64, SKEW).expect("there are records, and a skew");
        let (read_percent, is_skewed) = match work {
            Work::Read => (100, true),
            Work::Update | Work::Insert => (0, true),
            Work::Ycsb { read_percent, is_skewed } => (read_percent, is_skewed),
        };
        let mut draw = || {
            let any = rng.random_range(0..self.record_count);
            let popular = (ranks.sample(rng) as u64).wrapping_mul(SCATTER) % self.record_count;
            let is_read = rng.random_range(0..100) < read_percent;
            let record = if is_skewed { popular } else { any };
            Operation { record, put: (!is_read).then(|| self.next_version()) }
        };
        (0..count).map(|_| draw()).collect()
    }
}

/// When it began and when each lap ended, and how many results were wrong.
fn perform(system: &dyn System, operations: &[Operation], lap: usize) -> Result<(Vec<Instant>, u64), Error> {
    let (mut times, mut wrong) = (Vec::with_capacity(operations.len().div_ceil(lap) + 1), 0);
    times.push(Instant::now());
    for some in operations.chunks(lap) {
        for operation in some {
            match operation.put {
                Some(version) => system.put(&key(operation.record), &value(operation.record, version))?,
                None => wrong += u64::from(!is_right(system, operation.record)?),
            }
        }
        times.push(Instant::now());
    }
    Ok((times, wrong))
}

fn is_right(system: &dyn System, record: u64) -> Result<bool, Error> {
    let mut is_right = false;
    Ok(system.get(&key(record), &mut |found| is_right = is_value_of(record, found))? && is_right)
}
