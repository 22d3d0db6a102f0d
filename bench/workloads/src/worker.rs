//! The share of the records that one of several threads works on.

use crate::records::{Records, fresh};
use crate::shuffle::Shuffle;

/// A thread's place in a workload.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    pub(crate) records: Records,
    pub(crate) thread: usize,
    pub(crate) threads: usize,
    /// The seed of the run, equal for all threads.
    pub(crate) seed: u64,
}

impl Worker {
    /// Returns the number of `records` that this thread gets if each thread gets every `threads`th.
    pub(crate) fn share(&self, records: u64) -> u64 {
        let threads = self.threads as u64;
        (records + threads - 1 - self.thread as u64) / threads
    }

    /// Returns the `number`th record of this thread's share.
    pub(crate) fn nth(&self, number: u64) -> u64 {
        number * self.threads as u64 + self.thread as u64
    }

    /// Returns the `number`th record that this thread adds to the loaded ones.
    pub(crate) fn fresh(&self, number: u64) -> u64 {
        fresh(self.thread, number)
    }

    /// Returns the `number`th record that this thread removes, of its share in random order.
    pub(crate) fn victim(&self, number: u64) -> u64 {
        Shuffle::new(self.records.count).at(self.nth(number))
    }

    /// Returns the seed of the thread's random numbers.
    pub(crate) fn seed(&self) -> u64 {
        self.seed << 16 | self.thread as u64
    }
}
