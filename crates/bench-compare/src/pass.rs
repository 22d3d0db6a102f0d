//! Threads that do one thing for some seconds, each operation timed.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::cell::{Cell, Operation};
use crate::error::Error;
use crate::shape::Shape;
use crate::system::Opened;

/// Two figures of a latency are exact: finer than two runs agree.
const HISTOGRAM_FIGURES: u8 = 2;
/// What takes longer than a minute counts as that. A fixed limit keeps the histogram from growing within a pass.
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Gets are so short that looking at the clock after each would be a tenth of them: one of so many is timed.
const GETS_TIMED_ONE_OF: u64 = 16;

/// What a pass found.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) operations: u64,
    /// From the common start to the last thread's end.
    pub(crate) elapsed: Duration,
    /// In nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    /// Values that were not the expected ones.
    pub(crate) wrong: u64,
}

/// Has `cell.threads` threads work on `store` for `turn`. `seed` tells turns apart.
///
/// # Errors
/// The store's.
pub(crate) fn pass(store: &dyn Opened, shape: Shape, cell: Cell, turn: Duration, seed: u64) -> Result<Pace, Error> {
    let barrier = Barrier::new(usize::from(cell.threads.get()));
    let work = |thread: u64| {
        let worker = Worker::new(store, shape, seed << 16 | thread);
        barrier.wait();
        match cell.operation {
            Operation::Put => worker.puts(turn),
            Operation::Get => worker.gets(turn),
        }
    };
    let paces: Result<Vec<Pace>, Error> = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..cell.threads.get()).map(|i| scope.spawn(move || work(u64::from(i)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    Ok(paces?.into_iter().reduce(Pace::merge).expect("there is one thread at least"))
}

impl Pace {
    fn merge(mut self, other: Pace) -> Pace {
        self.latencies += other.latencies;
        Pace {
            operations: self.operations + other.operations,
            elapsed: self.elapsed.max(other.elapsed),
            latencies: self.latencies,
            wrong: self.wrong + other.wrong,
        }
    }
}

struct Worker<'a> {
    store: &'a dyn Opened,
    shape: Shape,
    rng: SmallRng,
    pace: Pace,
}

impl<'a> Worker<'a> {
    fn new(store: &'a dyn Opened, shape: Shape, seed: u64) -> Worker<'a> {
        let latencies = Histogram::new_with_max(LATENCY_NS_MAX, HISTOGRAM_FIGURES).expect("the limits are the crate's");
        let pace = Pace { operations: 0, elapsed: Duration::ZERO, latencies, wrong: 0 };
        Worker { store, shape, rng: SmallRng::seed_from_u64(seed), pace }
    }

    fn any(&mut self) -> u64 {
        self.rng.random_range(0..self.shape.records)
    }

    /// Every put's end is the next one's start.
    fn puts(mut self, turn: Duration) -> Result<Pace, Error> {
        let mut item = self.shape.item();
        let start = Instant::now();
        while self.pace.elapsed < turn {
            item.renew(self.any());
            self.store.put(&item.key, &item.value)?;
            let elapsed = start.elapsed();
            self.pace.latencies.saturating_record((elapsed - self.pace.elapsed).as_nanos() as u64);
            self.pace.elapsed = elapsed;
            self.pace.operations += 1;
        }
        Ok(self.pace)
    }

    fn gets(mut self, turn: Duration) -> Result<Pace, Error> {
        let (mut item, mut value) = (self.shape.item(), Vec::with_capacity(self.shape.value_bytes));
        let start = Instant::now();
        while self.pace.elapsed < turn {
            for _ in 1..GETS_TIMED_ONE_OF {
                self.get(&mut item, &mut value)?;
            }
            let before = start.elapsed();
            self.get(&mut item, &mut value)?;
            self.pace.elapsed = start.elapsed();
            self.pace.latencies.saturating_record((self.pace.elapsed - before).as_nanos() as u64);
            self.pace.operations += GETS_TIMED_ONE_OF;
        }
        Ok(self.pace)
    }

    fn get(&mut self, item: &mut crate::shape::Item, value: &mut Vec<u8>) -> Result<(), Error> {
        let record = self.any();
        item.turn_to(record);
        let is_right = self.store.get(&item.key, value)? && self.shape.is_value_of(record, value);
        self.pace.wrong += u64::from(!is_right);
        Ok(())
    }
}
