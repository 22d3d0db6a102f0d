//! The thread-independent part of eviction: a batch of pages, and the rounds for which threads wait.

use std::ops::Range;
use std::sync::OnceLock;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use epoch::Grace;
use parking_lot::{Condvar, Mutex};
use pmem::Backoff;

use super::hand::Hand;
use super::paging::Paging;
use crate::region::{PAGE_BYTES, Region};

/// The longest wait for a grace period.
pub(super) const GRACE_MAX: Duration = Duration::from_millis(20);

/// Pages that are evicted after one grace period.
const BATCH_COUNT: usize = 2048;

/// Counts rounds of background work, for threads that wait for some.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The number of rounds so far, and whether no more will follow.
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Rounds {
    /// Ends a round.
    pub(super) fn note(&self) {
        self.state.lock().0 += 1;
        self.changed.notify_all();
    }

    /// Makes waiting threads check again whether they have to wait.
    pub(super) fn recheck(&self) {
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// Ends the background work.
    pub(super) fn end(&self) {
        self.state.lock().1 = true;
        self.changed.notify_all();
    }

    /// Waits while `is_held`, at most two rounds: the second one began after the call.
    pub(super) fn wait(&self, is_held: impl Fn() -> bool, wake: impl Fn()) {
        let mut state = self.state.lock();
        let past = state.0 + 2;
        while state.0 < past && !state.1 && is_held() {
            wake();
            self.changed.wait(&mut state);
        }
    }
}

/// The eviction of one journal.
#[derive(Debug, Default)]
pub(super) struct Evictor {
    hand: Mutex<Hand>,
    /// Batches of pages that were evicted.
    pub(super) batches: Rounds,
    /// Checkpoints that have made pages clean.
    pub(super) checkpoints: Rounds,
    thread: OnceLock<Thread>,
}

impl Evictor {
    /// Wakes the thread that evicts, if there is one. Takes no lock.
    pub(super) fn wake(&self) {
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    /// Makes the calling thread the one that evicts.
    pub(super) fn be_thread(&self) {
        let _ = self.thread.set(thread::current());
    }

    /// Evicts up to `count` pages that are not in use. Returns the number.
    pub(super) fn evict(&self, paging: &Paging, region: &Region, count: u64) -> u64 {
        let mut hand = self.hand.lock();
        let page_count = region.len_bytes() / PAGE_BYTES;
        let mut batch = Vec::with_capacity((count as usize).min(BATCH_COUNT));
        paging.unlink(&mut hand, page_count, &mut batch);
        if batch.is_empty() || !await_grace() {
            batch.iter().for_each(|&page| paging.relink(page));
            return 0;
        }
        batch.sort_unstable();
        let (mut taken, mut run) = (0, 0..0);
        for page in batch.into_iter().filter(|&page| paging.take(page)) {
            taken += 1;
            if page != run.end {
                free(paging, region, run);
                run = page..page;
            }
            run.end += 1;
        }
        free(paging, region, run);
        paging.wake();
        taken
    }
}

/// Frees the memory of pages that the caller has claimed.
fn free(paging: &Paging, region: &Region, pages: Range<u64>) {
    if !pages.is_empty() {
        // SAFETY: the claim gives only this thread access to the pages.
        unsafe { region.memory.discard(pages.start * PAGE_BYTES..pages.end * PAGE_BYTES) };
        paging.settle_evicted(pages);
    }
}

/// Waits until every operation that is running now has ended; false if one takes too long.
pub(super) fn await_grace() -> bool {
    if epoch::is_pinned() {
        return false;
    }
    let (grace, start, mut backoff) = (Grace::start(), Instant::now(), Backoff::long());
    while !grace.is_over() {
        if start.elapsed() > GRACE_MAX {
            return false;
        }
        backoff.relax();
    }
    true
}
