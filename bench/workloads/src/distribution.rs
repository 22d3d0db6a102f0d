//! The choice of an operation's record: YCSB's request distributions.

use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

use crate::shuffle::Shuffle;

/// YCSB's skew.
const ZIPF_EXPONENT: f64 = 0.99;

/// Draws every record equally often.
pub(crate) fn uniform(rng: &mut SmallRng, records: u64) -> u64 {
    rng.random_range(0..records)
}

/// Draws few records very often, and those are scattered among all records.
pub(crate) struct Scrambled {
    ranks: Ranks,
    places: Shuffle,
}

impl Scrambled {
    /// Draws from `0..records`, which is not empty.
    pub(crate) fn new(records: u64) -> Scrambled {
        Scrambled { ranks: Ranks::new(records), places: Shuffle::new(records) }
    }

    /// Draws a record.
    pub(crate) fn sample(&self, rng: &mut SmallRng) -> u64 {
        self.places.at(self.ranks.sample(rng))
    }
}

/// Popularity ranks, 0 the most popular, by Zipf's law.
pub(crate) struct Ranks(Zipf<f64>);

impl Ranks {
    /// Draws from `count` ranks, at least one.
    pub(crate) fn new(count: u64) -> Ranks {
        Ranks(Zipf::new(count as f64, ZIPF_EXPONENT).expect("one rank at least, and a positive exponent"))
    }

    /// Draws a rank.
    pub(crate) fn sample(&self, rng: &mut SmallRng) -> u64 {
        self.0.sample(rng) as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const RECORDS: u64 = 1_000;
    const SAMPLES: u64 = 200_000;

    fn frequencies(mut sample: impl FnMut(&mut SmallRng) -> u64) -> Vec<f64> {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut counts = vec![0_u64; RECORDS as usize];
        for _ in 0..SAMPLES {
            counts[sample(&mut rng) as usize] += 1;
        }
        counts.into_iter().map(|count| count as f64 / SAMPLES as f64).collect()
    }

    #[test]
    fn uniform_is_even() {
        let frequencies = frequencies(|rng| uniform(rng, RECORDS));
        assert!(frequencies.iter().all(|&frequency| (0.0005..0.0015).contains(&frequency)));
    }

    #[test]
    fn ranks_follow_zipfs_law() {
        let ranks = Ranks::new(RECORDS);
        let frequencies = frequencies(|rng| ranks.sample(rng));
        let total: f64 = (1..=RECORDS).map(|rank| (rank as f64).powf(-ZIPF_EXPONENT)).sum();
        for rank in [1_u64, 2, 10, 100] {
            let expected = (rank as f64).powf(-ZIPF_EXPONENT) / total;
            let found = frequencies[rank as usize - 1];
            assert!((found / expected - 1.0).abs() < 0.15, "rank {rank}: {found} instead of {expected}");
        }
    }

    #[test]
    fn scrambling_keeps_skew_and_moves_popular_keys() {
        let scrambled = Scrambled::new(RECORDS);
        let frequencies = frequencies(|rng| scrambled.sample(rng));
        let popular = (0..RECORDS as usize).max_by(|&a, &b| frequencies[a].total_cmp(&frequencies[b]));
        assert_eq!(popular, Some(Shuffle::new(RECORDS).at(0) as usize));
        assert!(frequencies[..10].iter().sum::<f64>() < 0.3);
    }
}
