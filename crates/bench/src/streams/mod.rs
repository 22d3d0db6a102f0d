//! Streams: what one thread of a workload does, operation by operation.

mod consuming;
mod steady;
mod ycsb;

use hikv::Error;
use hikv::pool::Kind;

use crate::client::{Client, Shape};
use crate::subject::Subject;

pub(crate) use consuming::{Delete, Insert, Load};
pub(crate) use steady::{Steady, batch, on_any, scan};
pub(crate) use ycsb::{Mix, Ycsb};

/// One thread's operations.
pub(crate) trait Stream: Send {
    /// Does the next operation, or the next batch of them; how many that were, 0 when none is left.
    fn step(&mut self) -> Result<u64, Error>;

    /// What the last of them was.
    fn kind(&self) -> Kind;

    /// Results so far that were not the expected ones.
    fn errors(&self) -> u64;

    /// Makes room for another pass, where a pass uses records up.
    fn rewind(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Leaves the loaded records in the store, and no others.
    fn restore(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// What one turn of a thread was.
pub(crate) enum Step {
    /// So many operations, at least one.
    Served(u64),
    /// Something else than its operations.
    Applied,
    /// There is none left.
    Over,
}

/// What a thread of a pass does, turn by turn.
pub(crate) trait Turn: Send {
    /// The next turn.
    fn turn(&mut self) -> Result<Step, Error>;
}

/// A thread that only serves.
impl<T: Stream> Turn for T {
    #[inline(always)]
    fn turn(&mut self) -> Result<Step, Error> {
        self.step().map(|count| if count == 0 { Step::Over } else { Step::Served(count) })
    }
}

/// Which of how many threads a stream serves, and on what.
pub(crate) struct Seat<'a, S> {
    pub(crate) subject: &'a S,
    pub(crate) shape: Shape,
    pub(crate) thread: usize,
    pub(crate) threads: usize,
}

impl<'a, S: Subject> Seat<'a, S> {
    fn client(&self) -> Client<'a, S> {
        Client::new(self.subject, self.shape, self.thread as u64)
    }

    /// How many of `records` fall to this thread when each takes every `threads`th.
    fn share(&self, records: u64) -> u64 {
        let threads = self.threads as u64;
        (records + threads - 1 - self.thread as u64) / threads
    }

    /// The `number`th of this thread's share.
    fn nth(&self, number: u64) -> u64 {
        number * self.threads as u64 + self.thread as u64
    }
}
