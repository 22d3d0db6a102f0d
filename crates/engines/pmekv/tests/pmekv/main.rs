//! PMEKV, crashed, contended and counted.

mod canaries;
mod counted;
mod crash;
mod damage;
mod journaled;
mod meetings;
mod subject;
mod threads;
