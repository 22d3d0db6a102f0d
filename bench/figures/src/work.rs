//! Workloads of one system that threads share: operations are drawn before the clock starts, then timed.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::Error;
use crate::memory::Counted;
use crate::point::Accesses;
use crate::records::{Popularity, Shape};

/// A system under measurement. Each thread has its own session.
pub(crate) trait System: Sync {
    fn session(&self) -> Result<Box<dyn Session + '_>, Error>;
    /// Returns the accesses since the system was made, if they are counted.
    fn counted(&self) -> Option<Counted> {
        None
    }
}

/// A thread's access to a system.
pub(crate) trait Session: Send {
    /// Sets a key's value, whether the key exists or not.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error>;
    /// Calls `found` with a key's value; returns false if the key does not exist.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;
}

/// A system in this process that needs no sessions.
pub(crate) trait Shared: Sync {
    /// See [`Session::put`].
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;
    /// See [`Session::get`].
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;
    /// See [`System::counted`].
    fn counted(&self) -> Option<Counted> {
        None
    }
}

impl<S: Shared> System for S {
    fn session(&self) -> Result<Box<dyn Session + '_>, Error> {
        Ok(Box::new(self))
    }

    fn counted(&self) -> Option<Counted> {
        Shared::counted(self)
    }
}

impl<S: Shared> Session for &S {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        (**self).put(key, value)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        (**self).get(key, found)
    }
}

/// The operations of the threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Reads of existing keys, with a skew.
    Read,
    /// New values of existing keys, with the same skew.
    Update,
    /// New keys.
    Insert,
    /// YCSB with this percentage of reads; the other operations are updates.
    Ycsb { read_percent: u32, is_skewed: bool },
}

/// The result of a turn.
pub(crate) struct Measured {
    pub(crate) operations: u64,
    /// The time from the first thread's start to the last one's end.
    pub(crate) elapsed: Duration,
    /// The length of each lap of each thread.
    pub(crate) laps: Vec<Vec<Duration>>,
    pub(crate) wrong: u64,
    /// Exact, and so of one thread only.
    pub(crate) accesses: Option<Accesses>,
}

/// An operation on a record: a read, or a put of this version.
struct Operation {
    record: u64,
    put: Option<u32>,
}

impl Operation {
    /// Returns a read of the same record.
    fn read(&self) -> Operation {
        Operation { record: self.record, put: None }
    }
}

/// A thread's start, the ends of its laps, and its number of wrong results.
type Performed = (Vec<Instant>, u64);

/// A system and its contents.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    system: Box<dyn System>,
    shape: Shape,
    /// The records with smaller numbers exist.
    record_count: u64,
    version: u32,
}

impl Bench {
    /// Creates an empty system.
    pub(crate) fn empty(name: &'static str, system: Box<dyn System>, shape: Shape) -> Bench {
        Bench { name, system, shape, record_count: 0, version: 0 }
    }

    /// Creates a system and loads this many records.
    pub(crate) fn load(
        name: &'static str,
        system: Box<dyn System>,
        shape: Shape,
        record_count: u64,
    ) -> Result<Bench, Error> {
        let mut bench = Bench::empty(name, system, shape);
        let new = bench.draw_new(record_count as usize);
        perform(&mut *bench.system.session()?, shape, &new, new.len().max(1))?;
        Ok(bench)
    }

    pub(crate) fn record_count(&self) -> u64 {
        self.record_count
    }

    /// Makes each thread run `count` operations, with a clock read after every `lap`. Inserted records are read
    /// afterwards.
    pub(crate) fn turn(
        &mut self,
        work: Work,
        (thread_count, count, lap): (usize, usize, usize),
        seed: u64,
    ) -> Result<Measured, Error> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let drawn: Vec<Vec<Operation>> = (0..thread_count)
            .map(|_| match work {
                Work::Insert => self.draw_new(count),
                _ => self.draw(work, count, &mut rng),
            })
            .collect();
        let before = self.system.counted().filter(|_| thread_count == 1);
        let mut done = self.perform_together(&drawn, lap)?;
        done.accesses = before.zip(self.system.counted()).map(|(b, after)| after.per_operation(b, done.operations));
        if work == Work::Insert {
            let reads: Vec<_> = drawn.iter().flatten().map(Operation::read).collect();
            done.wrong += perform(&mut *self.system.session()?, self.shape, &reads, reads.len().max(1))?.1;
        }
        Ok(done)
    }

    fn perform_together(&self, drawn: &[Vec<Operation>], lap: usize) -> Result<Measured, Error> {
        let (barrier, shape) = (&Barrier::new(drawn.len()), self.shape);
        let sessions = drawn.iter().map(|_| self.system.session()).collect::<Result<Vec<_>, Error>>()?;
        let joined: Vec<Result<Performed, Error>> = thread::scope(|scope| {
            let threads: Vec<_> = drawn
                .iter()
                .zip(sessions)
                .map(|(operations, mut session)| {
                    scope.spawn(move || {
                        barrier.wait();
                        perform(&mut *session, shape, operations, lap)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread that measures does not panic")).collect()
        });
        let done: Vec<Performed> = joined.into_iter().collect::<Result<_, Error>>()?;
        let first = done.iter().filter_map(|(times, _)| times.first()).min().expect("a thread has begun");
        let last = done.iter().filter_map(|(times, _)| times.last()).max().expect("a thread has ended");
        let laps = done.iter().map(|(times, _)| times.windows(2).map(|pair| pair[1] - pair[0]).collect());
        Ok(Measured {
            operations: drawn.iter().map(|operations| operations.len() as u64).sum(),
            elapsed: *last - *first,
            laps: laps.collect(),
            wrong: done.iter().map(|(_, wrong)| wrong).sum(),
            accesses: None,
        })
    }

    fn next_version(&mut self) -> u32 {
        self.version += 1;
        self.version
    }

    /// Draws this many new records.
    fn draw_new(&mut self, count: usize) -> Vec<Operation> {
        let new = self.record_count..self.record_count + count as u64;
        self.record_count = new.end;
        new.map(|record| Operation { record, put: Some(0) }).collect()
    }

    fn draw(&mut self, work: Work, count: usize, rng: &mut SmallRng) -> Vec<Operation> {
        let popularity = Popularity::of(self.record_count);
        let (read_percent, is_skewed) = match work {
            Work::Read => (100, true),
            Work::Update | Work::Insert => (0, true),
            Work::Ycsb { read_percent, is_skewed } => (read_percent, is_skewed),
        };
        let mut draw = || {
            let any = rng.random_range(0..self.record_count);
            let popular = popularity.record(rng);
            let is_read = rng.random_range(0..100) < read_percent;
            let record = if is_skewed { popular } else { any };
            Operation { record, put: (!is_read).then(|| self.next_version()) }
        };
        (0..count).map(|_| draw()).collect()
    }
}

fn perform(session: &mut dyn Session, shape: Shape, operations: &[Operation], lap: usize) -> Result<Performed, Error> {
    let (mut times, mut wrong) = (Vec::with_capacity(operations.len().div_ceil(lap) + 1), 0);
    let mut value = shape.buffer();
    times.push(Instant::now());
    for some in operations.chunks(lap) {
        for &Operation { record, put } in some {
            match put {
                Some(version) => {
                    shape.fill(&mut value, record, version);
                    shape.with_key(record, |key| session.put(key, &value))?;
                }
                None => wrong += u64::from(!is_right(session, shape, record)?),
            }
        }
        times.push(Instant::now());
    }
    Ok((times, wrong))
}

fn is_right(session: &mut dyn Session, shape: Shape, record: u64) -> Result<bool, Error> {
    let mut is_right = false;
    let mut found = |value: &[u8]| is_right = shape.is_value_of(record, value);
    Ok(shape.with_key(record, |key| session.get(key, &mut found))? && is_right)
}
