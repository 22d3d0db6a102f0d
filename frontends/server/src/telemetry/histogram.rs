//! Latency histograms with eight buckets per doubling, so a percentile is accurate to an eighth.
//!
//! `hdrhistogram` is not used because the buckets cannot be read while another thread adds to them; these are words of
//! a fixed array.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// 2^10 ns: shorter durations are in the first bucket.
const FIRST_OCTAVE: u32 = 10;
/// Up to 2^36 ns, 69 seconds: longer durations are in the last bucket.
const OCTAVE_COUNT: u32 = 26;
/// Buckets per octave, as a power of two.
const FINENESS: u32 = 3;
const BUCKET_COUNT: usize = (OCTAVE_COUNT << FINENESS) as usize;

/// Written by one thread.
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKET_COUNT],
    total_ns: AtomicU64,
}

/// The contents of a histogram at one moment, or their difference between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Latencies {
    buckets: Box<[u64]>,
    pub(crate) total_ns: u64,
}

fn bucket_of(ns: u64) -> usize {
    let octave = (63 - (ns | 1).leading_zeros()).max(FIRST_OCTAVE);
    let within = (ns >> (octave - FINENESS)) & ((1 << FINENESS) - 1);
    let bucket = u64::from((octave - FIRST_OCTAVE) << FINENESS) + if ns >> FIRST_OCTAVE == 0 { 0 } else { within };
    (bucket as usize).min(BUCKET_COUNT - 1)
}

/// Returns the end of a bucket in ns.
fn end_of(bucket: usize) -> u64 {
    let (octave, within) = (FIRST_OCTAVE + (bucket >> FINENESS) as u32, bucket as u64 & ((1 << FINENESS) - 1));
    ((1 << FINENESS) + within + 1) << (octave - FINENESS)
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKET_COUNT], total_ns: AtomicU64::new(0) }
    }
}

/// Adds to a word that other threads seldom write: only a background job's thread does.
pub(super) fn add(word: &AtomicU64, count: u64) {
    word.fetch_add(count, Ordering::Relaxed);
}

impl Histogram {
    /// Adds `count` requests, each with this duration.
    #[inline]
    pub(crate) fn note(&self, took: Duration, count: u64) {
        let ns = took.as_nanos() as u64;
        add(&self.buckets[bucket_of(ns)], count);
        add(&self.total_ns, ns * count);
    }

    /// Adds the histogram's contents to `sum`.
    pub(crate) fn add_to(&self, sum: &mut Latencies) {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        sum.buckets.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        sum.total_ns += self.total_ns.load(Ordering::Relaxed);
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { buckets: vec![0; BUCKET_COUNT].into(), total_ns: 0 }
    }
}

impl Latencies {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the difference to `earlier`.
    pub(crate) fn since(&self, earlier: &Latencies) -> Latencies {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        Latencies {
            buckets: pairs.map(|(now, then)| now.saturating_sub(*then)).collect(),
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
        }
    }

    /// Returns the end of the bucket that contains the request of this rank, from 0 to 1; `None` without requests.
    pub(crate) fn quantile(&self, rank: f64) -> Option<Duration> {
        let wanted = (self.count() as f64 * rank).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map(|bucket| Duration::from_nanos(end_of(bucket)))
    }

    /// Returns the number of requests in each octave, with the octave's end as a power of 2 in ns. The last octave
    /// includes all longer ones.
    pub(crate) fn octaves(&self) -> impl Iterator<Item = (u32, u64)> {
        (FIRST_OCTAVE + 1..).zip(self.buckets.chunks(1 << FINENESS).map(|counts| counts.iter().sum()))
    }

    /// Returns each octave's end in seconds with its number of requests; the last has no end.
    pub(crate) fn octaves_seconds(&self) -> Vec<(f64, u64)> {
        let end =
            |power| if power == FIRST_OCTAVE + OCTAVE_COUNT { f64::INFINITY } else { (1u64 << power) as f64 / 1e9 };
        self.octaves().map(|(power, count)| (end(power), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        let mut last = 0;
        for ns in (0..4096).chain((12..40).flat_map(|octave| [(1 << octave) - 1, 1 << octave, (1 << octave) + 1])) {
            let bucket = bucket_of(ns);
            assert!(bucket == last || bucket == last + 1 || ns > 4096, "{ns}");
            assert!(bucket >= last && (ns < end_of(bucket) || bucket == BUCKET_COUNT - 1), "{ns}");
            assert!(bucket == 0 || end_of(bucket - 1) <= ns, "{ns}");
            last = bucket;
        }
        assert_eq!(last, BUCKET_COUNT - 1);
    }

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let (histogram, mut latencies) = (Histogram::default(), Latencies::default());
        (1..=1000).for_each(|us| histogram.note(Duration::from_micros(us), 2));
        histogram.add_to(&mut latencies);
        assert_eq!((latencies.count(), latencies.total_ns), (2000, 1000 * 1001 * 1000));
        for (rank, us) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = latencies.quantile(rank).unwrap().as_secs_f64() * 1e6;
            assert!(found >= us && found <= us * 1.13, "{rank}: {found}");
        }
        assert_eq!(latencies.octaves().map(|(_, count)| count).sum::<u64>(), 2000);
        assert_eq!(latencies.since(&latencies).quantile(0.5), None);
    }
}
