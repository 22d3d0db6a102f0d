//! Index structures, one folder each. Their files have the same names: `layout format open ops recover check
//! tests`.
//!
//! - [`PartitionedHash`] maps a key's signature to a [`Position`], the word that commits every operation. It never
//!   reads items: the caller decides whether an item has the sought key.
//! - [`BlockHash`] stores small items in its slots, and the positions of larger ones. One word per bucket commits
//!   every write.
//! - [`BPlusTree`] keeps positions in key order, in DRAM. If the bytes in its nodes do not decide a comparison, it
//!   reads the item through its caller.
//! - [`CachedTable`] holds copies of hot items in DRAM, for the engines whose reads are slower.

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
