//! One event loop's statistics by kind of command.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::{Histogram, Latencies, add};
use command_table::Kind;

/// The numbers of requests and errors in a batch, by kind.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct BatchCounts {
    requests: [u32; Kind::COUNT],
    errors: [u32; Kind::COUNT],
}

impl BatchCounts {
    #[inline]
    pub(crate) fn add_requests(&mut self, kind: Kind, count: usize) {
        self.requests[kind as usize] += count as u32;
    }

    #[inline]
    pub(crate) fn request_count(&self, kind: Kind) -> u64 {
        self.requests[kind as usize].into()
    }

    #[inline]
    pub(crate) fn add_error(&mut self, kind: Kind) {
        self.errors[kind as usize] += 1;
    }
}

/// Written only by the loop.
#[derive(Default)]
pub(crate) struct Counters {
    kinds: [KindCounters; Kind::COUNT],
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
}

#[derive(Default)]
struct KindCounters {
    errors: AtomicU64,
    latencies: Histogram,
}

/// The sums over all loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) errors: [u64; Kind::COUNT],
    pub(crate) latencies: [Latencies; Kind::COUNT],
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
}

impl Counted {
    pub(crate) fn of<'a>(loops: impl Iterator<Item = &'a Counters>) -> Counted {
        let mut sum = Counted::default();
        loops.for_each(|counters| counters.add_to(&mut sum));
        sum
    }
}

impl Counters {
    /// Adds a batch whose replies became sendable `took` after the poller reported it.
    pub(crate) fn note_answered(&self, batch: &BatchCounts, took: Duration) {
        for (kind, counters) in self.kinds.iter().enumerate() {
            if batch.requests[kind] > 0 {
                counters.latencies.note(took, u64::from(batch.requests[kind]));
            }
            if batch.errors[kind] > 0 {
                add(&counters.errors, u64::from(batch.errors[kind]));
            }
        }
    }

    pub(crate) fn note_bytes(&self, input_bytes: u64, output_bytes: u64) {
        add(&self.input_bytes, input_bytes);
        add(&self.output_bytes, output_bytes);
    }

    fn add_to(&self, sum: &mut Counted) {
        for (kind, counters) in self.kinds.iter().enumerate() {
            sum.errors[kind] += counters.errors.load(Ordering::Relaxed);
            counters.latencies.add_to(&mut sum.latencies[kind]);
        }
        sum.input_bytes += self.input_bytes.load(Ordering::Relaxed);
        sum.output_bytes += self.output_bytes.load(Ordering::Relaxed);
    }
}
