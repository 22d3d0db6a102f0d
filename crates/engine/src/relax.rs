//! How threads of a process wait for one another where a lock of the operating system's does not serve (`pmem::Backoff`).

use std::sync::Once;
use std::thread;
use std::time::Duration;

/// Yields come first: the awaited thread is mostly done within some microseconds, if it can only run.
const YIELD_COUNT: u32 = 32;
/// Then sleeps. A thread of a real-time priority yields to no lesser one: it has to sleep for that one to go on.
const SLEEP_MIN: Duration = Duration::from_micros(50);
/// What is awaited may come when a sleep begins, so this is what a wait may be too long by.
const SLEEP_MAX: Duration = Duration::from_micros(200);

/// Has every waiting thread of this process let others run, by [`relax`].
pub fn relax_by_threads() {
    static SAID: Once = Once::new();
    SAID.call_once(|| pmem::relax_by(relax));
}

/// Lets others run, for the longer the more often the caller has `asked` in one wait.
pub fn relax(asked: u32) {
    match asked.checked_sub(YIELD_COUNT) {
        None => thread::yield_now(),
        Some(slept) => thread::sleep((SLEEP_MIN * 2u32.saturating_pow(slept.min(16) / 2)).min(SLEEP_MAX)),
    }
}
