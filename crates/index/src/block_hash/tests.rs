//! The guarantees of the table to readers, to the sweep and to the next process, at moments that only its own words
//! distinguish.

mod batches;
mod crash;
mod interleavings;
mod left;
mod others;
mod power;
mod rig;
