//! Finds many keys at once. The keys of a group descend together (`apply`), so that their cache misses overlap, and
//! all items are prefetched before the first key is compared.

use pmem::Dram;

use super::apply::GROUP_COUNT;
use super::{BPlusTree, Keys};
use crate::Position;

impl<D: Dram> BPlusTree<D> {
    /// Finds the items of `wanted`, in order, and calls `found` for each with its number. Before that, calls `near`
    /// with the probable items, which may be invalid positions, so that the caller can prefetch. Any number of keys
    /// is allowed; groups of 16 or more are fastest.
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
                // A key whose descent failed is searched separately.
                let result =
                    self.lookup_prefetched(keys, prefetched).map_or_else(|| self.find(keys, prefetched.key()), Ok);
                found(group * GROUP_COUNT + number, result);
            }
        }
    }
}
