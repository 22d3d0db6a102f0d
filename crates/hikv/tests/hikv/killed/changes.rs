//! The changes of the writer's threads: each has its own keys, in an order determined by the round's number.

use std::iter;

use fastrand::Rng;
use testkit::Stamped;

pub(crate) const THREAD_COUNT: u64 = 3;
/// Enough keys to split the segments of one partition a few times.
pub(crate) const KEY_COUNT: u64 = 3_000;

/// Every so many changes one deletes, so that about 25 % of the keys are absent.
const DELETE_EVERY: u64 = 4;
/// Every so many values one is large enough for a separate extent.
const LARGE_EVERY: u64 = 64;
pub(crate) const LARGE_BYTES: usize = 100_000;
const SMALL_BYTES_MAX: usize = 500;

/// A put, or a delete if there is no value.
pub(crate) struct Change {
    pub(crate) key: u64,
    pub(crate) value: Option<Vec<u8>>,
}

/// Returns the infinite sequence of a thread's changes in a round.
pub(crate) fn changes(round: u64, thread: u64) -> impl Iterator<Item = Change> {
    let mut random = Rng::with_seed(round * THREAD_COUNT + thread);
    let mut puts = (round << 32)..;
    iter::repeat_with(move || {
        let key = random.u64(..KEY_COUNT / THREAD_COUNT) * THREAD_COUNT + thread;
        let put = puts.next().expect("puts have no end");
        let is_put = random.u64(..DELETE_EVERY) > 0;
        let is_large = random.u64(..LARGE_EVERY) == 0;
        let filler_bytes = if is_large { LARGE_BYTES } else { random.usize(..SMALL_BYTES_MAX) };
        Change { key, value: is_put.then(|| Stamped { key, put }.value(filler_bytes)) }
    })
}

/// Returns the value of a key behind those that rounds change.
pub(crate) fn standing_value(key: u64) -> Vec<u8> {
    Stamped { key, put: 0 }.value(LARGE_BYTES)
}

pub(crate) fn name(key: u64) -> String {
    format!("key {key}")
}
