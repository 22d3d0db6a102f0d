//! FPTree with a cache in DRAM, the rival that HiKV's paper calls FPTree-C: an FPTree, and copies of values by key, of
//! which the one used longest ago leaves first.
//!
//! A get that finds no copy reads the tree and copies the value. A put changes the copy, if there is one; a delete
//! removes it. A scan reads the tree.
//!
//! # Concurrency
//! A writer changes the copy while it holds the leaf's lock, after its write is durable. A reader copies a value under
//! the lock of the cache's shard, and only if the leaf has not changed since it was read. So a copy is never older than
//! the tree's value when no writer is in progress, and never shows a change that is not durable. Lock
//! order: leaf, shard.

mod shard;

use epoch::pin;
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use crate::fptree::FpTree;
use crate::key::{Key, KeyBytes};
use crate::records::Records;
use crate::tree::{OnPair, Reshapes, Sizes, ComparisonCounter, Tree, TreeResult};

use shard::{HashedKey, Shard};

/// The bytes of copies for each pair with which HiKV's paper compares: HiKV's DRAM exceeds FPTree's by 15.4 % of the
/// persistent memory (section 4.7), of which a pair takes 288 bytes.
pub const CACHED_BYTES_A_PAIR: u64 = 288 * 154 / 1000;

const SHARD_COUNT: usize = 16;
/// The bytes of copies, until [`FpTreeCached::caching`] sets another limit.
const CACHE_BYTES_DEFAULT: u64 = 64 << 20;

/// An FPTree with a cache in DRAM.
pub struct FpTreeCached<M: Medium, D: Dram> {
    tree: FpTree<M, D>,
    shards: [Mutex<Shard>; SHARD_COUNT],
}

impl<M: Medium, D: Dram> FpTreeCached<M, D> {
    fn of(tree: FpTree<M, D>, cache_bytes: u64) -> FpTreeCached<M, D> {
        let shard = |_| Mutex::new(Shard::new(cache_bytes / SHARD_COUNT as u64));
        FpTreeCached { tree, shards: std::array::from_fn(shard) }
    }

    /// Sets the most bytes of copies; there are none then.
    #[must_use]
    pub fn caching(self, cache_bytes: u64) -> FpTreeCached<M, D> {
        FpTreeCached::of(self.tree, cache_bytes)
    }

    /// Returns the bytes of copies.
    pub fn cached_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    fn hashed(&self, bytes: &KeyBytes) -> HashedKey {
        HashedKey { signature: self.tree.records().hasher.signature(bytes), key: Key::of(bytes) }
    }

    /// The tree's fingerprints and the map use low bits of the signature.
    fn shard(&self, key: &HashedKey) -> &Mutex<Shard> {
        &self.shards[(key.signature >> 32) as usize % SHARD_COUNT]
    }
}

impl<M: Medium, D: Dram> Tree<M, D> for FpTreeCached<M, D> {
    const NAME: &'static str = "fptree-c";
    const LEAF_ENTRY_COUNT: u64 = FpTree::<M, D>::LEAF_ENTRY_COUNT;

    fn format(medium: M, dram: D, sizes: &Sizes) -> TreeResult<FpTreeCached<M, D>> {
        Ok(FpTreeCached::of(FpTree::format(medium, dram, sizes)?, CACHE_BYTES_DEFAULT))
    }

    fn open(medium: M, dram: D) -> TreeResult<FpTreeCached<M, D>> {
        Ok(FpTreeCached::of(FpTree::open(medium, dram)?, CACHE_BYTES_DEFAULT))
    }

    fn records(&self) -> &Records<M, D> {
        self.tree.records()
    }

    fn get_counted(&self, bytes: &KeyBytes, found: impl FnOnce(&[u8]), comparisons: &impl ComparisonCounter) -> TreeResult<bool> {
        let key = self.hashed(bytes);
        if let Some(copy) = self.shard(&key).lock().get(&key) {
            found(copy);
            return Ok(true);
        }
        let pin = pin();
        let (position, read) = self.tree.find(key.key, key.signature as u8, comparisons);
        let Some(position) = position else { return Ok(false) };
        self.records().value(position, pin.pinned(), |value| {
            let mut shard = self.shard(&key).lock();
            if read.is_current() {
                shard.fill(key, value);
            }
            drop(shard);
            found(value);
        })?;
        Ok(true)
    }

    fn put(&self, bytes: &KeyBytes, value: &[u8]) -> TreeResult<()> {
        self.tree.put_record(bytes, value, || {
            let key = self.hashed(bytes);
            self.shard(&key).lock().change(&key, value);
        })
    }

    fn delete(&self, bytes: &KeyBytes) -> TreeResult<bool> {
        self.tree.delete_entry(bytes, || {
            let key = self.hashed(bytes);
            self.shard(&key).lock().remove(&key);
        })
    }

    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> TreeResult<()> {
        self.tree.scan(from, each)
    }

    fn dram_bytes(&self) -> u64 {
        self.tree.dram_bytes() + self.cached_bytes()
    }

    fn reshapes(&self) -> &Reshapes {
        self.tree.reshapes()
    }
}
