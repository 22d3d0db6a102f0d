//! Counts how often a thread waits for other threads.

use std::cell::Cell;

use pmem::relax_by;

thread_local! {
    /// The number of times that this thread yielded to others.
    static WAIT_COUNT: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work` and returns how often this thread waited for others during it. From then on, all threads of the process
/// wait the way an engine's threads do.
pub fn wait_count(work: impl FnOnce()) -> u32 {
    // Registers the engine's own callback first. That happens once per process, so an engine that `work` opens cannot
    // replace the counting callback below.
    engine::relax_by_threads();
    relax_by(|asked| {
        WAIT_COUNT.set(WAIT_COUNT.get() + 1);
        engine::relax(asked);
    });
    WAIT_COUNT.set(0);
    work();
    WAIT_COUNT.get()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use pmem::Backoff;

    use super::*;

    #[test]
    fn only_this_threads_waits_are_counted() {
        let waits = || (0..3).for_each(|_| Backoff::long().relax());
        let beside = || thread::scope(|scope| _ = scope.spawn(waits));
        assert_eq!([wait_count(waits), wait_count(beside), wait_count(|| {})], [3, 0, 0]);
    }
}
