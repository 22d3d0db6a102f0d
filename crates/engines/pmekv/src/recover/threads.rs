//! Distributes parts of an opening's work over threads.

use std::iter;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, available_parallelism};

/// The number of keys or entries for which a thread is worth starting.
const COUNT_PER_THREAD: usize = 1 << 16;
const THREAD_COUNT_MAX: usize = 16;

/// Returns the number of threads for work on `count` keys or entries.
pub(super) fn thread_count(count: usize) -> usize {
    match count / COUNT_PER_THREAD {
        0 | 1 => 1,
        worth => worth.min(THREAD_COUNT_MAX).min(available_parallelism().map_or(1, NonZero::get)),
    }
}

/// Returns a part's share of `0..count`.
pub(super) fn share(part: usize, part_count: usize, count: usize) -> Range<usize> {
    count * part / part_count..count * (part + 1) / part_count
}

/// Does all parts, on this thread and others: a thread that has finished a part takes the next. Returns the results, in
/// order.
pub(super) fn each_part<T: Send>(thread_count: usize, part_count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|&part| part < part_count));
    let work = || {
        // Nodes and keys stay in memory until the opening ends: the caller's pin holds back later evictions.
        let _pin = epoch::pin();
        take().map(|part| (part, work(part))).collect::<Vec<_>>()
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..thread_count.min(part_count)).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        let others = others.into_iter().map(|thread| thread.join().expect("a part is done, or is an error"));
        others.for_each(|others| done.extend(others));
        done
    });
    done.sort_unstable_by_key(|&(part, _)| part);
    done.into_iter().map(|(_, made)| made).collect()
}
