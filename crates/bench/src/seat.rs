//! Which of how many threads a stream serves, and on what.

use crate::records::{Records, fresh};
use crate::shuffle::Shuffle;

/// A thread's place in a workload.
#[derive(Clone, Copy)]
pub(crate) struct Seat {
    pub(crate) records: Records,
    pub(crate) thread: usize,
    pub(crate) threads: usize,
    /// Tells runs apart, not threads.
    pub(crate) seed: u64,
}

impl Seat {
    /// How many of `records` fall to this thread when each takes every `threads`th.
    pub(crate) fn share(&self, records: u64) -> u64 {
        let threads = self.threads as u64;
        (records + threads - 1 - self.thread as u64) / threads
    }

    /// The `number`th of this thread's share.
    pub(crate) fn nth(&self, number: u64) -> u64 {
        number * self.threads as u64 + self.thread as u64
    }

    /// The `number`th record that this thread adds to the loaded ones.
    pub(crate) fn fresh(&self, number: u64) -> u64 {
        fresh(self.thread, number)
    }

    /// The `number`th record that it removes, of its share in random order.
    pub(crate) fn victim(&self, number: u64) -> u64 {
        Shuffle::new(self.records.count).at(self.nth(number))
    }

    /// What its random numbers begin with.
    pub(crate) fn seed(&self) -> u64 {
        self.seed << 16 | self.thread as u64
    }
}
