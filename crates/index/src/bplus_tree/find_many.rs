//! Finding many keys at once: the group goes down together (`apply`), so that cache misses overlap, and all items are asked for before
//! the first key is compared.

use pmem::Dram;

use super::apply::GROUP_COUNT;
use super::{BPlusTree, Keys};
use crate::Position;

impl<D: Dram> BPlusTree<D> {
    /// Finds the items of `wanted`, in order: `found` is told of each, by its number. Before that `near` is shown the items that are likely
    /// theirs, which may be none that are there, to ask the cache for what will be read of them. Any number of keys; from 16 on they are
    /// quickest.
    pub fn find_many<K: Keys>(
        &self,
        keys: &K,
        wanted: &[&[u8]],
        near: impl Fn(Position),
        mut found: impl FnMut(usize, Result<Option<Position>, K::Error>),
    ) {
        let pin = epoch::pin();
        for (group, wanted) in wanted.chunks(GROUP_COUNT).enumerate() {
            let leaves = self.prefetch_many(pin.pinned(), keys, wanted);
            let leaves = &leaves[..wanted.len()];
            leaves.iter().filter_map(|prefetched| self.likely(keys, prefetched)).for_each(&near);
            for (number, prefetched) in leaves.iter().enumerate() {
                // One that lost its way goes on its own.
                let result =
                    self.lookup_prefetched(keys, prefetched).map_or_else(|| self.find(keys, prefetched.key()), Ok);
                found(group * GROUP_COUNT + number, result);
            }
        }
    }
}
