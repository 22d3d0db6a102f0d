//! Locks of nodes, in DRAM: they exist only in this process, and a crash leaves none.
//!
//! # Lock order
//! Lane -> tree -> nodes, from the root down -> the heap's. The tree lock is the root's parent: shared while the
//! root's word is read, exclusive for a thread that changes it. It is in stripes (`tree_lock.rs`), so that descents of
//! several threads write to no common line.
//!
//! # The root
//! A descent passes an inner root while it shares the tree lock, without the root's own lock. So a thread that changes
//! an inner root holds the tree lock and the root's own lock, both exclusively. A node becomes the root, and stops
//! being the root, while one thread holds both: no thread has a lock that no longer guards the node. A root that is a
//! leaf has only its own lock, as other leaves.
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
mod tree_lock;

pub(crate) use latch::{Mode, WaitPolicy};
pub(crate) use lock::{Held, NodeLock};
pub(crate) use table::LockTable;
pub(crate) use tree_lock::{HeldTree, TreeLock};
