//! What the table owes to readers, to the sweep and to the next process, in moments that only its own words tell apart.

mod batches;
mod crash;
mod interleavings;
mod left;
mod others;
mod power;
mod rig;
