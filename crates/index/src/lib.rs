//! Index structures, one folder each. Files of the same name do the same: `layout ops split sweep check tests`.
//!
//! - [`PartitionedHash`] maps a key's signature to a [`Position`], the word that commits every operation. The
//!   caller, not the index, decides whether an item has the sought key.
//! - [`BlockHash`] stores small items in its slots, and the positions of larger ones. One word per bucket commits
//!   every write.
//! - [`BPlusTree`] keeps positions in key order, in DRAM. Where the bytes in the nodes do not decide a comparison,
//!   the tree asks the caller for the item's key.
//! - [`CachedTable`] holds copies of hot items in DRAM, for the engines whose reads are slower.
//!
//! # Terms
//! These words have the same meaning in all comments of this crate.
//!
//! - *ordered*: everything flushed before becomes durable before anything flushed afterwards
//!   (`pmem::Persist::order`).
//! - *commit*: a request that everything flushed so far become durable. On memory, a commit is a fence and complete
//!   when it returns. On a log, a commit is a sync that several writers share and wait for.
//! - *publish*: make words of one cache line visible to readers, in an order that a crash preserves. The last word
//!   is the commit point.
//! - *settle*: make a published word durable, and clear the mark that says that it may not be durable yet.
//! - *sealed word*: a word with a check in its upper 16 bits, which exposes torn and damaged values.
//! - *pinned*: a thread is pinned while it may follow pointers of an index (`epoch`). An unlinked object is
//!   *retired*, and freed when every thread that was pinned at that time has unpinned.
//! - *freeze* a segment: take all its locks. *Bury* a segment: mark it DEAD.
//! - *sweep*: the walk over all segments after open, which counts the entries and finds the free space.

pub mod block_hash;
pub mod bplus_tree;
pub mod cached_table;
pub mod canary;
pub mod partitioned_hash;
mod position;
pub mod segmented;
mod shared;

pub use block_hash::BlockHash;
pub use bplus_tree::BPlusTree;
pub use cached_table::CachedTable;
pub use partitioned_hash::PartitionedHash;
pub use position::Position;
