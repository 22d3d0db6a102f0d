//! The engine beside a map, crashed at every step, and among threads.

mod crash;
mod damaged;
mod expiry;
mod journaled;
mod merging;
mod scans;
mod subject;
mod tags;
mod threads;
