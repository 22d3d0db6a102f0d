//! The HiKV engine (Xia et al., USENIX ATC 2017): a hash index in persistent memory serves single keys. If the store
//! keeps order, a B+tree in DRAM serves ranges (`order`).
//!
//! A write costs two persists, the item's and the entry's; a delete costs one (paper, section 3.4.2). The commit point
//! is the store of the entry's position word (`index::partitioned_hash::ops`).
//!
//! # Put and update
//! | after | a crash leaves |
//! |---|---|
//! | 1 space reserved (only in DRAM) | nothing |
//! | 2 item written and flushed | bytes that no entry names: free space |
//! | 3a bucket locked, key looked up; ticket of the ordered index taken, in DRAM | the same |
//! | 3b a new key's home line is full: overflow bit stored, flushed | perhaps the bit: lookups read on, find nothing |
//! | 4a order | the same, durable |
//! | 4b signature and position stored, with FRESH | old or new state; no position without its signature (one line) |
//! | 4c commit (a fence) | the new state |
//! | 5 FRESH cleared, not flushed | the new state, with or without the mark: opening accepts both |
//! | 6 ticket filled, replaced item retired | the new state; the old item's space is free after opening |
//!
//! For several keys in one step see `batch`.
//!
//! # Delete
//! | after | a crash leaves |
//! |---|---|
//! | the old position stored with DELETED and FRESH | the item, or a mark that reads as absent |
//! | commit | the mark: the key is deleted |
//! | position 0 stored (the overflow bit stays), not flushed | the mark or the 0; both read as absent |
//! | the item retired | the same; its space is free after opening |
//!
//! # Modules
//! A module uses only those below it. The store ([`HiKv`]) is a writer and the compaction of its space; the writer owns
//! the parts, and each part owns its fields.
//! ```text
//! hikv::{ops, open, compact}  the engine's traits; create and open a store; moves of items, as updates
//! hikv                        the store: steps of the background, closing, statistics
//! check  reap                 a check of the store; a step that deletes expired keys
//! write                       Writer: one key (fast and general path), groups, updates, batches
//! order                       Ordered: queues of changes, the tree and its builder; scans
//! snapshots  space  cache     kept items; allocator, sweep and garbage; copies of hot items
//! reaper  salvage             when expired keys are deleted; the items of a damaged region
//! read  image                 Reader: the medium, the hash index, lookups, walks; the clean image
//! item, places, memory, canary
//! ```
//!
//! # Lock order
//! background, compaction -> partition -> pairs -> stash -> allocator; the order's build -> known image -> allocator.
//! Operations are pinned throughout. Exception: an operation that waits for readers (`clear`) is not pinned.

mod cache;
pub mod canary;
mod check;
mod hikv;
pub mod image;
mod item;
mod memory;
mod order;
mod places;
mod read;
mod reap;
mod reaper;
pub mod salvage;
mod snapshots;
mod space;
#[cfg(test)]
mod tests;
mod write;

pub use heap::Parameters;
pub use hikv::HiKv;
pub use memory::Memory;
pub use order::Ordered;
