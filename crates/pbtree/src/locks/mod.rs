//! Locks of nodes, in DRAM: only this process knows of them, and a crash leaves none.
//!
//! # Lock order
//! Lane -> tree -> nodes, from the root down -> the heap's. The tree lock is the root's parent: shared before the root's word
//! is read, exclusive for a thread that changes it.
//!
//! A thread that goes down holds the parent until it has the child (*coupling*). So no thread waits at a node that is being freed,
//! which takes its parent exclusively; and none comes to a node by a word that has changed since.
//!
//! # Versions
//! A lock counts the threads that had it alone. By that a scan knows a node again that it has let go of (`latch.rs`, `scan/place.rs`). It may wait at
//! one that is being freed, whose lock stays, and then finds another version.

mod heads;
mod latch;
mod lock;
#[cfg(test)]
mod model;
mod table;

pub(crate) use latch::Mode;
pub(crate) use lock::{Held, NodeLock, Patience};
pub(crate) use table::LockTable;
