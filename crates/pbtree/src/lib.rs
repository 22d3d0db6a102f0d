//! A persistent B+tree: keys in order in persistent memory, with no index in DRAM that would have to be built, so that a store serves as soon
//! as it is open. The structure of InK. What separators begin with is noted as descents come by (`locks/heads.rs`).
//!
//! # Invariants
//! - A node of the tree has sorted keys, and all keys of a child lie between the separators around it.
//! - Every key word names a chunk of its own. *Separators own their bytes*: no node but one names a separator's chunk, so a
//!   leaf's key may be freed though a separator was made of it.
//! - A key is in one leaf once. The value word is 0 once the key was deleted; the pair stays until the leaf is packed.
//! - What a word names is durable before the word is.
//! - Nothing is freed before the word that named it is durably something else.
//!
//! # Writes
//! Every writer holds a lane (`undo_log`), and exclusively the lock of each node that it changes, until the commit has returned;
//! then the locks go, and then the writer waits, if its medium has anything to wait for. `Persist::wait` is never called under a
//! lock. A thread that reads a node meanwhile meets the lock; one that comes later takes the ticket that is kept beside it. Once the medium has
//! failed, a reader of a key goes by the key's own ticket (`unsettled.rs`).
//!
//! | | steps | fences |
//! |---|---|---|
//! | update | value chunk, flush; order; the value word, flush; commit | 2 |
//! | update in place | the run of the old chunk; order; the chunk; order; number; commit | 3 |
//! | delete | the value word := 0, flush; commit | 1 |
//! | insert | chunks and the run of the pairs behind it; order; pairs moved, meta; order; number; commit | 3 |
//! | insert at a leaf's end | chunks and the pair, flush; order; meta, flush; commit | 2 |
//! | split, pack, merge | new node and separator, the run; order; the nodes; order; number; commit | 3 |
//!
//! A word that is changed without a run is told to the lane first (`undo_log::Lane::intend`). Everything that has several
//! words is in a run: `undo_log` says what a crash leaves.
//!
//! Several keys change as one step in `batch.rs`. A split is a change of its own, made on the way down from the root by a writer that found
//! the leaf full (`split.rs`). Neighbours that deletes have left low are merged by a caller with time (`merge.rs`).
//!
//! # Locks
//! In DRAM: `locks`, which has the order.
//!
//! This crate uses `core` alone.
#![no_std]

mod batch;
pub mod canary;
mod check;
mod clear;
mod descent;
mod error;
mod key;
pub mod layout;
mod locks;
mod merge;
mod node;
mod pack;
mod pass;
mod read;
mod retire;
mod salvage;
mod scan;
mod single;
mod spare;
mod split;
mod stamps;
mod sweep;
mod tree;
mod unsettled;
mod value;
mod walk;
mod word;
mod write;

pub use batch::BatchWrite;
pub use check::{Damage, Figures};
pub use error::Error;
pub use layout::{KEY_BYTES_MAX, ORDER_DEFAULT, VALUE_BYTES_MAX};
pub use merge::Merged;
pub use pass::{Next, Pass};
pub use retire::{FreeImmediately, Retire};
pub use scan::{Direction, Ended, Page, Scan};
pub use tree::{Options, Tree};
pub use value::{NewValue, Seal, Value};
pub use write::{Change, Written};
