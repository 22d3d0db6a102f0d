//! The resources for which the threads of the model wait. Times are in picoseconds.
//!
//! Requests must be made in the order of time, which a simulation with an ordered list of events guarantees. Then the
//! end of a request is known as soon as it is made, because service times do not depend on later requests.

use std::collections::VecDeque;

/// A resource that serves one request at a time, in the order of arrival: a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fifo {
    free_at: u64,
}

impl Fifo {
    /// Makes a request; returns the time of its end.
    pub(crate) fn serve(&mut self, now: u64, service: u64) -> u64 {
        self.free_at = self.free_at.max(now) + service;
        self.free_at
    }
}

/// A queue of limited length before some servers, which take the requests in the order of arrival.
#[derive(Debug)]
pub(crate) struct BoundedQueue {
    servers: Vec<Fifo>,
    capacity: usize,
    /// The starts of the last requests, at most `capacity`.
    starts: VecDeque<u64>,
    last_end: u64,
}

impl BoundedQueue {
    /// Creates an empty queue.
    ///
    /// # Panics
    /// Without a server.
    pub(crate) fn new(server_count: usize, capacity: usize) -> BoundedQueue {
        assert!(server_count > 0, "a queue needs a server");
        BoundedQueue { servers: vec![Fifo::default(); server_count], capacity, starts: VecDeque::new(), last_end: 0 }
    }

    /// Adds a request; returns the time at which the queue has space for it.
    pub(crate) fn add(&mut self, now: u64, service: u64) -> u64 {
        let is_full = self.starts.len() == self.capacity;
        let oldest = if is_full { self.starts.pop_front() } else { None };
        let accepted = now.max(oldest.unwrap_or(0));
        let server = self.servers.iter_mut().min_by_key(|server| server.free_at).expect("there is a server");
        let end = server.serve(accepted, service);
        self.starts.push_back(end - service);
        self.last_end = self.last_end.max(end);
        accepted
    }

    /// Returns the time at which all requests so far have ended.
    pub(crate) fn empty_at(&self, now: u64) -> u64 {
        now.max(self.last_end)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Poisson arrivals and constant service, M/D/1: the mean wait is `r / (2 (1 - r))` services at a load of `r`.
    #[test]
    fn random_arrivals_wait_as_in_md1() {
        const SERVICE: u64 = 1_000_000;
        for load in [0.3, 0.6, 0.8] {
            let (mut rng, mut lock, mut now, mut waited) = (SmallRng::seed_from_u64(1), Fifo::default(), 0.0, 0.0);
            const COUNT: usize = 400_000;
            for _ in 0..COUNT {
                now -= (1.0 - rng.random::<f64>()).ln() * SERVICE as f64 / load;
                let arrival = now as u64;
                waited += (lock.serve(arrival, SERVICE) - SERVICE - arrival) as f64;
            }
            let (found, expected) = (waited / COUNT as f64 / SERVICE as f64, load / (2.0 * (1.0 - load)));
            assert!((found / expected - 1.0).abs() < 0.03, "load {load}: {found}, expected {expected}");
        }
    }

    /// Requests that arrive together: two servers take them in pairs, and the queue holds three that wait.
    #[test]
    fn full_queue_accepts_when_a_request_starts() {
        let mut queue = BoundedQueue::new(2, 3);
        let accepted: Vec<u64> = (0..7).map(|_| queue.add(0, 10)).collect();
        // The starts are 0, 0, 10, 10, 20, 20, 30.
        assert_eq!(accepted, [0, 0, 0, 0, 0, 10, 10]);
        assert_eq!((queue.empty_at(5), queue.empty_at(100)), (40, 100));
    }
}
