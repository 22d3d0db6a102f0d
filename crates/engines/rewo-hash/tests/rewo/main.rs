//! The engine beside a map, crashed at every step, and among threads.

mod crash;
mod expiry;
mod journaled;
mod splits;
mod subject;
mod threads;
