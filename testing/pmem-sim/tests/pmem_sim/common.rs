//! Helpers of the tests of both models.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use pmem::{Bytes, Offset};
use pmem_sim::Sim;

/// One page.
pub(crate) const REGION_BYTES: u64 = 4096;

/// More than any history here can leave, so that all images are listed.
const BUDGET: usize = 1000;

/// A plain store.
pub(crate) fn store(sim: &Sim, at: Offset, word: u64) {
    sim.store(at, word, Ordering::Relaxed);
}

/// Returns the words at `at` in every image possible now. The recovered media must agree with the images.
pub(crate) fn words(sim: &Sim, at: &[Offset]) -> BTreeSet<Vec<u64>> {
    let in_image = |image: pmem_sim::Image| -> Vec<u64> {
        let words = at.iter().map(|at| image.line(*at)[(at.0 % 64 / 8) as usize]).collect();
        let recovered = Sim::from_image(&image, sim.model());
        assert_eq!(at.iter().map(|at| recovered.load(*at, Ordering::Relaxed)).collect::<Vec<_>>(), words);
        assert_eq!(recovered.images(BUDGET, 0).len(), 1, "nothing is pending after a crash");
        words
    };
    sim.images(BUDGET, 0).into_iter().map(in_image).collect()
}

/// Builds the set of expected images.
pub(crate) fn set<const N: usize, const IMAGES: usize>(images: [[u64; N]; IMAGES]) -> BTreeSet<Vec<u64>> {
    images.into_iter().map(Vec::from).collect()
}
