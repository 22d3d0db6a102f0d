//! The threads that serve a table (`signals`), and their sleep.
//!
//! A thread that has found no request for a while sleeps. No writer waits for such a thread, so not every request
//! wakes one: every sixteenth request that a writer takes back wakes all sleeping threads. If the store has no
//! writers, all threads sleep. With few writers, the writers write the copies.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};

use super::CachedTable;

/// The number of rounds over all signals without a request after which a thread sleeps: some tens of microseconds.
const LINGER_ROUNDS: u32 = 1000;
/// The number of rounds after which a thread yields to others: to the writers, if there are more threads than
/// processors.
const ROUNDS_BETWEEN_YIELDS: u32 = 32;
/// One in this number of requests that no thread had taken wakes the threads.
const WAKES_EVERY: u64 = 16;

/// The threads to wake, and the counter that decides when.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    threads: OnceLock<Box<[Thread]>>,
    taken_back_count: AtomicU64,
}

/// Threads that serve a table, until this is dropped.
#[derive(Debug)]
pub struct CopyThreads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The process that has the threads; a forked child has none of them.
    process: u32,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    alive_count: AtomicUsize,
    awake_count: AtomicUsize,
}

/// Raises a counter while it lives.
struct Counting<'a>(&'a AtomicUsize);

impl<'a> Counting<'a> {
    fn of(count: &'a AtomicUsize) -> Counting<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Counting(count)
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Wakes {
    /// Records that a writer writes a copy that no thread had taken.
    pub(super) fn note_taken_back(&self) {
        let Some(threads) = self.threads.get() else { return };
        if self.taken_back_count.fetch_add(1, Ordering::Relaxed).is_multiple_of(WAKES_EVERY) {
            threads.iter().for_each(Thread::unpark);
        }
    }
}

impl CopyThreads {
    /// Starts `count` threads that serve `table`. Call it once per table.
    ///
    /// # Errors
    /// Returns the operating system's error if it cannot start a thread.
    pub fn start(table: &Arc<CachedTable>, count: usize) -> io::Result<CopyThreads> {
        let shared = Arc::new(Shared::default());
        let mut started = CopyThreads { shared, threads: Vec::new(), process: std::process::id() };
        for _ in 0..count {
            let (theirs, table) = (Arc::clone(&started.shared), Arc::clone(table));
            let run = move || theirs.run(&table);
            started.threads.push(thread::Builder::new().name("hikv-copies".into()).spawn(run)?);
        }
        table.wakes.threads.get_or_init(|| started.threads.iter().map(|thread| thread.thread().clone()).collect());
        Ok(started)
    }

    /// Returns the number of living threads. A thread that panicked does not count.
    #[must_use]
    pub fn alive_count(&self) -> usize {
        self.shared.alive_count.load(Ordering::Relaxed)
    }

    /// Returns the number of threads that look for requests and do not sleep.
    #[must_use]
    pub fn awake_count(&self) -> usize {
        self.shared.awake_count.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn run(&self, table: &CachedTable) {
        let _alive = Counting::of(&self.alive_count);
        while !self.stop.load(Ordering::Acquire) {
            self.serve_until_idle(table);
            if !self.stop.load(Ordering::Acquire) {
                thread::park();
            }
        }
    }

    fn serve_until_idle(&self, table: &CachedTable) {
        let _awake = Counting::of(&self.awake_count);
        let mut idle_rounds = 0;
        while idle_rounds < LINGER_ROUNDS && !self.stop.load(Ordering::Acquire) {
            idle_rounds = if table.serve() > 0 { 0 } else { idle_rounds + 1 };
            if idle_rounds % ROUNDS_BETWEEN_YIELDS == ROUNDS_BETWEEN_YIELDS - 1 {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Drop for CopyThreads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if self.process != std::process::id() {
            std::mem::take(&mut self.threads).into_iter().for_each(std::mem::forget);
            return;
        }
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A panic was reported when it happened; the thread's request was refused.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use pmem::Backoff;

    use super::*;
    use crate::cached_table::{LIMIT_BYTES_MIN, Lookup, LookupKey, NewCopy};
    use pmem_sim::SimDram;

    const KEY: LookupKey<'_> = LookupKey { bytes: b"key", signature: 7 };
    const COPY: NewCopy<'_> = NewCopy { value: b"value", version: [1, 2], expiry_ms: u64::MAX };
    /// The maximum number of checks on other threads, each of which lets them run: seconds.
    const LOOK_COUNT_MAX: u32 = 10_000_000;

    fn table() -> CachedTable {
        let table = CachedTable::new(LIMIT_BYTES_MIN, SimDram).unwrap();
        table.accept_handoffs();
        table
    }

    fn put(table: &CachedTable) {
        let mut write = table.begin(KEY);
        write.hand_off(&COPY);
        write.put(&COPY);
    }

    fn wait_until(mut is_so: impl FnMut() -> bool) {
        assert!(
            (0..LOOK_COUNT_MAX).any(|_| is_so() || {
                thread::yield_now();
                false
            }),
            "the condition never became true"
        );
    }

    fn is_hit(table: &CachedTable) -> bool {
        matches!(table.lookup(KEY, || 0, |copied| copied.value.to_vec()), Lookup::Hit(value) if value == COPY.value)
    }

    #[test]
    fn threads_sleep_until_written_to() {
        let table = Arc::new(table());
        let threads = CopyThreads::start(&table, 2).unwrap();
        wait_until(|| threads.alive_count() == 2 && threads.awake_count() == 0);
        (0..1000).for_each(|_| _ = is_hit(&table));
        assert_eq!((threads.awake_count(), table.stats().served_count), (0, 0), "no thread wrote");
        put(&table);
        assert!(is_hit(&table) && table.stats().taken_back_count == 1, "writers do not wait for a sleeping thread");
        wait_until(|| {
            put(&table);
            assert!(is_hit(&table));
            table.stats().served_count > 0
        });
        wait_until(|| threads.awake_count() == 0);
    }

    /// The thread holds the request, and waits for the bucket's lock, when it dies.
    #[test]
    fn dying_thread_leaves_no_waiters() {
        fn dies(backoff: &mut Backoff) {
            assert!(thread::current().name() != Some("hikv-copies"), "meant to");
            backoff.relax();
        }
        let table = table();
        let table = Arc::new(CachedTable { buckets: table.buckets.relaxing_by(dies), ..table });
        put(&table);
        let mut write = table.begin(KEY);
        write.hand_off(&COPY);
        let locked = table.buckets.lock(KEY.signature);
        let threads = CopyThreads::start(&table, 1).unwrap();
        wait_until(|| threads.threads[0].is_finished());
        drop(locked);
        write.put(&COPY);
        assert!(!is_hit(&table) && threads.alive_count() == 0, "the state of the copy is unknown");
        put(&table);
        assert!(is_hit(&table), "writers write the copy");
    }
}
