//! The claims about figures of more threads than this machine has cores, which the model draws.

use super::claims::{ALL, FPTREE, FPTREE_C, HIKV, MIXES, NVSTORE, TWO, claim, of};
use crate::paper::{Claim, Figure, Shown};

/// The numbers of threads of the model.
pub(super) const PREDICTED_AT: &[f64] = &[2.0, 4.0, 8.0, 16.0, 32.0];
const MOST: &[f64] = &[32.0];

/// A system's time on two threads divided by that on 32, for every mix.
const fn scaling(text: &'static str, (least, most): (f64, f64), system: &'static [&'static str]) -> Claim {
    claim(text, (least, most), of(&MIXES, system, TWO), of(&MIXES, system, MOST))
}

/// The time of a rival on 32 threads divided by HiKV's, for every mix.
const fn at_most(text: &'static str, printed: (f64, f64), system: &'static [&'static str]) -> Claim {
    claim(text, printed, of(&MIXES, system, MOST), of(&MIXES, HIKV, MOST))
}

/// Figures of more threads than this machine has cores.
pub(super) const MODELLED: &[Figure] = &[Figure {
    name: "7",
    title: "YCSB A to F on 2 to 32 threads",
    workloads: &MIXES,
    at: PREDICTED_AT,
    axis: "threads",
    systems: ALL,
    shown: Shown::Rate,
    printed: &[],
    is_model: true,
    claims: &[
        scaling("HiKV, 32 threads / 2", (4.3, 18.3), HIKV),
        scaling("NVStore, 32 threads / 2", (4.6, 8.2), NVSTORE),
        scaling("FPTree, 32 threads / 2", (3.4, 10.1), FPTREE),
        scaling("FPTree-C, 32 threads / 2", (3.5, 8.8), FPTREE_C),
        at_most("32 threads, NVStore / HiKV: 1.7 to 5.3 times better", (2.7, 6.3), NVSTORE),
        at_most("32 threads, FPTree / HiKV: 24.2 % to 6.3 times better", (1.24, 7.3), FPTREE),
        at_most("32 threads, FPTree-C / HiKV: 24.1 % to 3.5 times better", (1.24, 4.5), FPTREE_C),
    ],
}];
