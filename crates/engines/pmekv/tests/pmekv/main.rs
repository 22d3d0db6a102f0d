//! PMEKV, crashed, contended and counted.

mod canaries;
mod crash;
mod journaled;
mod subject;
