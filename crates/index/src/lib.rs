//! Index structures, a folder each, that use the same words for their files: `layout format open ops recover check tests`.
//!
//! [`PartitionedHash`] maps a key's signature to a [`Position`], the word that commits every operation. It never looks
//! into items: the caller decides whether an item's key is the one wanted. [`BPlusTree`] keeps positions in the order of their keys, in
//! DRAM; the tree looks into items through its caller where the bytes in the nodes do not decide. [`CachedTable`] has copies of hot
//! items in DRAM, for the engines whose reads are slower.

pub mod block_hash;
pub mod bplus_tree;
pub mod cached_table;
pub mod canary;
pub mod partitioned_hash;
mod position;
mod prefetch;
pub mod segmented;
mod shared;

pub use block_hash::BlockHash;
pub use bplus_tree::BPlusTree;
pub use cached_table::CachedTable;
pub use partitioned_hash::PartitionedHash;
pub use position::Position;
pub use prefetch::prefetch_item;
