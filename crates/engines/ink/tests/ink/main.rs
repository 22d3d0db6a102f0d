//! The engine compared with a map, crashed at every step, and with several threads.

mod crash;
mod damaged;
mod expiry;
mod journaled;
mod merging;
mod scans;
mod subject;
mod tags;
mod threads;
