//! The heap from outside: what is handed out, what is refused, what is survived.

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
