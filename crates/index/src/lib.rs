//! Index structures, a folder each, all with the same file names: `layout format open ops recover check tests`.
//!
//! An index maps a key's signature to a [`Position`], the word that commits every operation. It never looks into items:
//! whoever calls it decides whether an item's key is the one wanted.

pub mod bplus_tree;
pub mod partitioned_hash;
mod position;

pub use bplus_tree::BPlusTree;
pub use partitioned_hash::PartitionedHash;
pub use position::Position;
