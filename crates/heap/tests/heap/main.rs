//! Tests of the heap from outside: allocation, refused regions, crashes.

mod allocation;
mod crash;
mod damage;
mod eviction;
mod growth;
mod holes;
mod killed;
mod memory;
mod superblock;
mod sweep;
mod threads;
mod words;
