//! The heap from outside: what it hands out, what it refuses, what it survives.

mod allocation;
mod crash;
mod damage;
mod growth;
mod holes;
mod killed;
mod memory;
mod superblock;
mod sweep;
mod threads;
mod words;
