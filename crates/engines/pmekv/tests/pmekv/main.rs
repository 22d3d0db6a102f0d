//! Tests of PMEKV: crashes, contention and counts.

mod attacked;
mod canaries;
mod counted;
mod crash;
mod damage;
mod expiring;
mod full;
mod journaled;
mod lengths;
mod meetings;
mod memory;
mod opening;
mod rotten;
mod scarce;
mod stalls;
mod subject;
mod surplus;
mod threads;
