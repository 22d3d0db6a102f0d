//! HiKV-par: ordered trees by ranges of keys, each with a queue, and each behind one lock instead of a concurrent tree
//! (sections 3.3 and 4.5).
//!
//! The store below keeps no order. A write holds the key's stripe from before the write until the change is in the
//! queue of the key's range, so that a key's changes are queued in the order in which they happened. A change states
//! that a key exists or that it does not. An update is queued as well, because the writer does not know whether its key
//! existed. Scans wait for changes that were queued before them; they read keys one leaf at a time, and values from the
//! hash index, many at a time.
//!
//! # Migration
//! When a range has a quarter more keys than the mean, half of the difference to its smaller neighbour moves there,
//! repeatedly until no range is too large. The borders' lock is held for this and keeps out every writer and scan, as
//! in the paper.
//!
//! # Limits
//! - Writes are single puts and deletes, as the workloads make them: batches and conditional writes are not queued.
//! - No thread writes while the keys are ordered for the first time.
//! - Updates and inserts look the same to it, so `adaptive-without-updates` is the same as `adaptive` here.
//! - Backend threads are woken after 256 changes of a queue: fewer wait for a scan, or for more changes.
//!
//! # Lock order
//! stripe -> borders -> a range's queue; borders -> trees, in ascending order -> a queue.

mod range;

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use hikv::QueueStats;
use parking_lot::{Mutex, RwLock};

use self::range::{Change, Leaf, Range};
use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::{Error, Need, Subject};

/// So many that writers of different keys rarely meet.
const STRIPE_COUNT: usize = 1024;
/// Backend threads are woken after this many changes of a queue, as in HiKV.
const ASK_EVERY: u64 = 256;
/// Checks for changes before a backend thread sleeps.
const LINGER_COUNT: u32 = 64;
/// Keys that a range may have above the mean, in addition to a quarter of it.
const SLACK_COUNT: u64 = 1024;

/// The trees, and the threads that apply changes to them.
pub struct Par {
    ranges: Arc<Ranges>,
    backends: Vec<JoinHandle<()>>,
}

struct Ranges {
    /// The smallest key of each range except the first, for as many ranges as have keys.
    borders: RwLock<Vec<Box<[u8]>>>,
    all: Box<[Range]>,
    /// The capacity of a range's queue, in changes.
    queue_bound: usize,
    stripes: Box<[Mutex<()>]>,
    hasher: RandomState,
    is_kept: AtomicBool,
    is_over: AtomicBool,
    migration_count: AtomicU64,
}

impl Par {
    /// Creates `range_count` trees with queues of `queue_bound` changes each, and `backend_count` threads that apply
    /// queued changes.
    ///
    /// # Panics
    /// If there is no range, or a queue has no capacity.
    #[must_use]
    pub fn new(range_count: usize, queue_bound: usize, backend_count: usize) -> Par {
        assert!(range_count > 0 && queue_bound > 0, "no range, or a queue without capacity");
        let ranges = Arc::new(Ranges {
            borders: RwLock::default(),
            all: (0..range_count).map(|_| Range::default()).collect(),
            queue_bound,
            stripes: (0..STRIPE_COUNT).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            is_kept: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            migration_count: AtomicU64::new(0),
        });
        let start = |_| {
            let ranges = Arc::clone(&ranges);
            thread::spawn(move || ranges.keep_up())
        };
        let backends = (0..backend_count).map(start).collect();
        Par { ranges, backends }
    }

    /// Returns the number of migrations between ranges.
    #[must_use]
    pub fn migration_count(&self) -> u64 {
        self.ranges.migration_count.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        self.backends.iter().for_each(|backend| backend.thread().unpark());
    }
}

impl Drop for Par {
    fn drop(&mut self) {
        self.ranges.is_over.store(true, Ordering::Release);
        self.wake();
        for backend in self.backends.drain(..) {
            // A panic was already reported.
            let _ = backend.join();
        }
    }
}

impl Way for Par {
    fn name(&self) -> &'static str {
        "par"
    }

    fn offers(&self, _store: &Candidate, _need: Need) -> bool {
        true
    }

    fn around_write<R>(
        &self,
        _store: &Candidate,
        key: &[u8],
        what: Write<'_>,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        if !self.ranges.is_kept.load(Ordering::Acquire) {
            return write();
        }
        let _stripe = self.ranges.stripe(key).lock();
        let written = write()?;
        let number = self.ranges.queue(Change { key: key.into(), is_there: what != Write::Delete });
        if number % ASK_EVERY == ASK_EVERY - 1 {
            self.wake();
        }
        Ok(written)
    }

    /// No thread writes during this.
    fn put_in_order(&self, store: &Candidate) -> Result<(), Error> {
        if !self.ranges.is_kept.load(Ordering::Acquire) {
            let mut keys: Vec<Box<[u8]>> = Vec::new();
            store.store().for_each(|key, _| keys.push(key.into()))?;
            self.ranges.load(keys);
        }
        Ok(())
    }

    fn scan(
        &self,
        store: &Candidate,
        from: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.ranges.catch_up();
        let mut next = Some(Bound::Included(Box::from(from)));
        while let Some(from) = next {
            let (keys, after) = self.ranges.page(from);
            let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
            let mut flow = ControlFlow::Continue(());
            store.multi_get_with(&keys, |place, value| {
                // A key without a value was deleted since.
                if let (Some(value), ControlFlow::Continue(())) = (value, flow) {
                    flow = each(keys[place], value);
                }
            })?;
            next = after.filter(|_| flow.is_continue());
        }
        Ok(())
    }

    fn queued_count(&self, _store: &Candidate) -> Option<u64> {
        self.ranges.is_kept.load(Ordering::Acquire).then(|| self.ranges.queued_count())
    }

    fn step(&self, _store: &Candidate) -> Result<u64, hikv::Error> {
        Ok(self.ranges.drain_all())
    }

    fn queue_stats(&self, _store: &Candidate) -> QueueStats {
        let applied_count = self.ranges.all.iter().map(Range::applied_count).sum();
        QueueStats { queued_count: self.ranges.queued_count(), applied_count, updated_count: 0 }
    }
}

impl Ranges {
    fn stripe(&self, key: &[u8]) -> &Mutex<()> {
        &self.stripes[self.hasher.hash_one(key) as usize % STRIPE_COUNT]
    }

    /// Divides the keys evenly.
    fn load(&self, mut keys: Vec<Box<[u8]>>) {
        keys.sort_unstable();
        let mut borders = self.borders.write();
        let share = keys.len().div_ceil(self.all.len()).max(1);
        *borders = keys.chunks(share).skip(1).map(|chunk| chunk[0].clone()).collect();
        let mut keys = keys.into_iter();
        self.all.iter().for_each(|range| range.load(keys.by_ref().take(share)));
        self.is_kept.store(true, Ordering::Release);
    }

    /// Queues a change; returns its number in its queue.
    fn queue(&self, change: Change) -> u64 {
        let mut change = change;
        loop {
            let borders = self.borders.read();
            let range = &self.all[locate(&borders, &change.key)];
            change = match range.push(change, self.queue_bound) {
                Ok(number) => return number,
                Err(change) => change,
            };
            drop(borders);
            // The queue is full: the writer applies changes, or yields to the thread that does.
            if self.drain(range) == 0 {
                thread::yield_now();
            }
        }
    }

    /// Applies the next changes of a range, and starts a migration if it has too many keys.
    fn drain(&self, range: &Range) -> u64 {
        let drained = range.drain();
        if drained > 0 && self.is_large(range) {
            self.level();
        }
        drained
    }

    fn drain_all(&self) -> u64 {
        self.all.iter().map(|range| self.drain(range)).sum()
    }

    fn queued_count(&self) -> u64 {
        self.all.iter().map(Range::queued_count).sum()
    }

    /// Waits until every change queued before is applied, and helps to apply them.
    fn catch_up(&self) {
        for range in &self.all {
            let tail = range.tail();
            while range.applied_count() < tail {
                if self.drain(range) == 0 {
                    thread::yield_now();
                }
            }
        }
    }

    /// Returns the keys of one leaf from a key on, and the bound at which to continue.
    fn page(&self, from: Bound<Box<[u8]>>) -> Leaf {
        let borders = self.borders.read();
        let (Bound::Included(key) | Bound::Excluded(key)) = &from else { return (Vec::new(), None) };
        let number = locate(&borders, key);
        let (keys, after) = self.all[number].page(&from);
        (keys, after.or_else(|| borders.get(number).cloned().map(Bound::Included)))
    }

    fn is_large(&self, range: &Range) -> bool {
        let total: u64 = self.all.iter().map(Range::key_count).sum();
        let mean = total / self.all.len() as u64;
        self.all.len() > 1 && range.key_count() > mean + mean / 4 + SLACK_COUNT
    }

    /// Moves keys until no range is too large. All other threads wait for the borders.
    fn level(&self) {
        let mut borders = self.borders.write();
        while let Some(large) = self.all.iter().position(|range| self.is_large(range)) {
            let neighbours = [large.checked_sub(1), Some(large + 1).filter(|&next| next < self.all.len())];
            let smaller = neighbours.into_iter().flatten().min_by_key(|&other| self.all[other].key_count());
            let smaller = smaller.expect("a range that is larger than the mean has a neighbour");
            let excess = self.all[large].key_count().saturating_sub(self.all[smaller].key_count()) / 2;
            if excess == 0 {
                return;
            }
            let border = self.all[large].give(&self.all[smaller], excess, smaller > large);
            match borders.get_mut(large.min(smaller)) {
                Some(between) => *between = border,
                // The neighbour had no keys yet.
                None => borders.push(border),
            }
            self.migration_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The loop of a backend thread.
    fn keep_up(&self) {
        let mut idle_count = 0;
        while !self.is_over.load(Ordering::Acquire) {
            idle_count = if self.drain_all() > 0 { 0 } else { idle_count + 1 };
            match idle_count {
                0 => {}
                1..LINGER_COUNT => thread::yield_now(),
                _ => thread::park(),
            }
        }
    }
}

/// Returns the range of a key.
fn locate(borders: &[Box<[u8]>], key: &[u8]) -> usize {
    borders.partition_point(|border| **border <= *key)
}
