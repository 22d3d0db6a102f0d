//! Workloads and their checks of results, and the variants of HiKV, whose results must all be right.

mod checked;
mod variants;
