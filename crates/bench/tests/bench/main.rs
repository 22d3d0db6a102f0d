//! Workloads, with what counts as wrong in their results, and the variants of HiKV on which all results are right.

mod checked;
mod variants;
