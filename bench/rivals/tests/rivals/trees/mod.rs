//! The trees compared with a map, crashed at every step, used by several threads, and counted.

mod counts;
mod crash;
mod reopened;
mod subject;
mod threads;
