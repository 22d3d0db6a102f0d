//! A uniform sample from a stream of unknown length.

use std::collections::HashSet;
use std::hash::Hash;

use fastrand::Rng;

/// Keeps `capacity` of the items offered under different keys, each of them with the same probability.
pub(crate) struct Reservoir<K, T> {
    capacity: usize,
    kept: Vec<T>,
    known: HashSet<K>,
    rng: Rng,
}

impl<K: Eq + Hash, T> Reservoir<K, T> {
    pub(crate) fn new(capacity: usize, seed: u64) -> Reservoir<K, T> {
        Reservoir { capacity, kept: Vec::new(), known: HashSet::new(), rng: Rng::with_seed(seed) }
    }

    pub(crate) fn offer(&mut self, key: K, item: T) {
        if !self.known.insert(key) {
            return;
        }
        if self.kept.len() < self.capacity {
            self.kept.push(item);
            return;
        }
        let place = self.rng.usize(..self.known.len());
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = item;
        }
    }

    /// Returns the kept items and empties the reservoir.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.known.clear();
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explored_states_are_kept_once() {
        let mut reservoir = Reservoir::new(5, 1);
        [3, 1, 3, 2, 1].into_iter().for_each(|item| reservoir.offer(item, item));
        assert_eq!(reservoir.take(), [3, 1, 2]);
        assert!(reservoir.take().is_empty());
    }

    #[test]
    fn late_and_early_items_sample_equally() {
        let mut late_count = 0;
        for seed in 0..200 {
            let mut reservoir = Reservoir::new(10, seed);
            (0..100).for_each(|item| reservoir.offer(item, item));
            late_count += reservoir.take().into_iter().filter(|&item| item >= 50).count();
        }
        assert!((900..1100).contains(&late_count), "{late_count} of 2000");
    }
}
