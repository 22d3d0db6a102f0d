//! Waiting between threads of a process where no lock of the operating system serves (`pmem::Backoff`).

use std::sync::Once;
use std::thread;
use std::time::Duration;

/// Yields come first: the awaited thread is usually done within some microseconds if it gets a core.
const YIELD_COUNT: u32 = 32;
/// Then sleeps. A thread of real-time priority does not yield to one of lower priority, so it must sleep.
const SLEEP_MIN: Duration = Duration::from_micros(50);
/// The awaited event may come just after a sleep begins, so a wait may be too long by this much.
const SLEEP_MAX: Duration = Duration::from_micros(200);

/// Makes every waiting thread of this process use [`relax`].
pub fn relax_by_threads() {
    static SAID: Once = Once::new();
    SAID.call_once(|| pmem::relax_by(relax));
}

/// Lets other threads run: the longer, the more often the caller has `asked` in one wait.
pub fn relax(asked: u32) {
    match asked.checked_sub(YIELD_COUNT) {
        None => thread::yield_now(),
        Some(slept) => thread::sleep((SLEEP_MIN * 2u32.saturating_pow(slept.min(16) / 2)).min(SLEEP_MAX)),
    }
}
