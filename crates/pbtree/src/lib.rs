//! A persistent B+tree: keys are in order in persistent memory, and no index has to be built in DRAM, so a store
//! serves immediately after it is opened. This is InK's structure. The first bytes of separators are cached in DRAM
//! when a descent first passes a node (`locks/heads.rs`).
//!
//! # Invariants
//! - A node of the tree has sorted keys, and all keys of a child are between the separators around it.
//! - Every key word refers to a separate chunk. *Separators own their bytes*: only one node refers to a separator's
//!   chunk, so a leaf's key may be freed even if a separator was made from it.
//! - A key is in one leaf once. The value word is 0 once the key was deleted; the pair stays until the leaf is
//!   packed.
//! - The data that a word refers to is durable before the word is.
//! - Nothing is freed before the word that referred to it has durably changed.
//!
//! # Writes
//! Every writer holds a lane (`undo_log`), and exclusively the lock of each changed node, until the commit has
//! returned. The writer then releases the locks and waits, if the medium has anything to wait for. `Persist::wait` is
//! never called under a lock. A thread that reads such a node early blocks on the lock; a later thread gets the
//! ticket stored next to the lock. Once the medium has failed, a reader of a key uses the key's own ticket
//! (`unsettled.rs`).
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
//! A word that is changed without a run is reported to the lane first (`undo_log::Lane::intend`). Changes of several
//! words are in a run: `undo_log` describes the state after a crash.
//!
//! `batch.rs` changes several keys in one step. A split is a separate change, made on a second descent by a writer
//! that found the leaf full (`split.rs`). A background caller merges neighbours in which deletes have left few pairs
//! (`merge.rs`).
//!
//! # Locks
//! Locks are in DRAM: `locks`, which defines their order.
//!
//! # Modules
//! A module uses only modules of the lines above its own.
//!
//! | modules | types, and their fields |
//! |---|---|
//! | `layout` `error` `canary` `retire` `options` `word` `stamps` | formats and counters |
//! | `key` `value` `node` | chunks, and the words of one node |
//! | `locks` | `LockTable`: the locks of nodes, with the cached heads of separators |
//! | `nodes` | `Nodes`: the medium, the locks, the lock of the root; every path to a node |
//! | `unsettled` `space` `walk` | `Unsettled`: tickets. `Space`: the heap, the spare node. `Walks`: the latch of walks |
//! | `read` | `Reader`: nodes and tickets |
//! | `scan` `salvage` `check` | one run each, with a reader |
//! | `pack` `split` `merge` `pass` `clear` | one change of nodes each, with nodes, space and a lane |
//! | `writer` | `Writers`: lanes, stamps. `Writer`: one lane, the reader, the space; changes of one leaf |
//! | `sweep` `write` `batch` | `Write`: one key. `Batch`: several keys |
//! | `tree` | `Tree`: reader, writers, space, walks |
//!
//! This crate uses only `core`.
#![no_std]

mod batch;
pub mod canary;
mod check;
mod clear;
mod error;
mod key;
pub mod layout;
mod locks;
mod merge;
mod node;
mod nodes;
mod options;
mod pack;
mod pass;
mod read;
mod retire;
mod salvage;
mod scan;
mod space;
mod split;
mod stamps;
mod sweep;
mod tree;
mod unsettled;
mod value;
mod walk;
mod word;
mod write;
mod writer;

pub use batch::BatchWrite;
pub use check::{Damage, Figures};
pub use error::Error;
pub use layout::{KEY_BYTES_MAX, ORDER_DEFAULT, VALUE_BYTES_MAX};
pub use merge::Merged;
pub use options::Options;
pub use pass::{Next, Pass};
pub use retire::{FreeImmediately, Retire};
pub use scan::{Direction, Ended, Page, Scan};
pub use tree::Tree;
pub use value::{NewValue, Seal, Value};
pub use write::{Change, Written};
