//! Locks of nodes, in DRAM: they exist only in this process, and a crash leaves none.
//!
//! # Lock order
//! Lane -> tree -> nodes, from the root down -> the heap's. The tree lock is the root's parent: shared while the
//! root's word is read, exclusive for a thread that changes it.
//!
//! A descending thread holds the parent's lock until it has the child's (*coupling*). So no thread waits at a node
//! that is being freed, because freeing needs the parent's lock exclusively; and none reaches a node through a word
//! that has changed since.
//!
//! # Versions
//! A lock counts the exclusive locks that were released. A scan uses this to return to a node that it has unlocked
//! (`latch.rs`, `scan/place.rs`). It may wait at a node that is being freed: the lock stays, and the scan then finds
//! another version.

mod heads;
mod latch;
mod lock;
#[cfg(test)]
mod model;
mod table;

pub(crate) use latch::Mode;
pub(crate) use lock::{Held, NodeLock, Patience};
pub(crate) use table::LockTable;
