//! A fair sample of crash images out of a stream of unknown length.

use std::collections::HashSet;

use fastrand::Rng;
use pmem_sim::Image;

/// Keeps `capacity` of the different images offered, each with the same probability.
pub(crate) struct Reservoir {
    capacity: usize,
    kept: Vec<Image>,
    known: HashSet<u64>,
    rng: Rng,
}

impl Reservoir {
    pub(crate) fn new(capacity: usize, seed: u64) -> Reservoir {
        Reservoir { capacity, kept: Vec::new(), known: HashSet::new(), rng: Rng::with_seed(seed) }
    }

    pub(crate) fn offer(&mut self, image: Image) {
        if !self.known.insert(image.hash()) {
            return;
        }
        if self.kept.len() < self.capacity {
            self.kept.push(image);
            return;
        }
        let place = self.rng.usize(..self.known.len());
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = image;
        }
    }

    /// What was kept; the reservoir is empty then.
    pub(crate) fn take(&mut self) -> Vec<Image> {
        std::mem::take(&mut self.kept)
    }
}
