//! The engine compared with a map, crashed at every step, and with concurrent threads.

mod cached;
mod chains;
mod crash;
mod damaged;
mod expiry;
mod full;
mod hooked;
mod journaled;
mod killed;
mod lookups;
mod moves;
mod overtaken;
mod persists;
mod served;
mod slow_memory;
mod splits;
mod stalled;
mod stalls;
mod subject;
mod threads;
mod undurable;
mod walks;
