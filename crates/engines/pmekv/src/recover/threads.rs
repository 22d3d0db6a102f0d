//! Parts of an opening's work, on as many threads as they are worth.

use std::num::NonZero;
use std::ops::Range;
use std::thread::{self, available_parallelism};

/// Keys, or entries, that are worth a thread.
const COUNT_PER_THREAD: usize = 1 << 16;
const THREAD_COUNT_MAX: usize = 16;

/// Parts of work on so many keys or entries.
pub(super) fn part_count(count: usize) -> usize {
    match count / COUNT_PER_THREAD {
        0 | 1 => 1,
        worth => worth.min(THREAD_COUNT_MAX).min(available_parallelism().map_or(1, NonZero::get)),
    }
}

/// A part's share of `0..count`.
pub(super) fn share(part: usize, part_count: usize, count: usize) -> Range<usize> {
    count * part / part_count..count * (part + 1) / part_count
}

/// Does each part, the first on this thread; what came of them, in order.
pub(super) fn each_part<T: Send>(part_count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..part_count).map(|part| scope.spawn(move || work(part))).collect();
        let first = work(0);
        let others = others.into_iter().map(|thread| thread.join().expect("a part is done, or is an error"));
        [first].into_iter().chain(others).collect()
    })
}
