//! The table of node locks, indexed by the node's offset. Only the parts that were used are allocated.
//!
//! Three levels: a GiB of the region, a unit of 64 KiB, a node's slot. A unit's locks need 1/42 of the space of its
//! nodes of order 63.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use heap::HeapError;
use heap::layout::{REGION_UNITS_MAX, UNIT_BYTES};
use pmem::{Dram, DramBox, Offset};

use crate::Error;
use crate::layout::PAIR_BYTES;
use crate::locks::NodeLock;

const GROUP_UNITS: usize = 1 << 14;
const GROUP_COUNT: usize = REGION_UNITS_MAX as usize / GROUP_UNITS;

/// The locks of the nodes that start in a unit: one for each slot of the unit.
type Unit = AtomicPtr<NodeLock>;
type Group = [Unit; GROUP_UNITS];
type Groups = [AtomicPtr<Group>; GROUP_COUNT];

/// The locks of a tree's nodes.
pub(crate) struct LockTable<D: Dram> {
    pub(super) dram: D,
    /// The binary logarithm of a node's bytes.
    node_shift: u32,
    groups: DramBox<Groups, D>,
    allocated_bytes: AtomicU64,
}

impl<D: Dram + Clone> LockTable<D> {
    /// Creates the table for nodes of this size, a power of two.
    pub(crate) fn new(dram: D, node_bytes: u64) -> Result<LockTable<D>, HeapError> {
        // SAFETY: zeros are groups that are not allocated yet.
        let groups = unsafe { DramBox::<Groups, D>::zeroed(dram.clone()) };
        let groups = groups.ok_or(HeapError::NoDram { wanted_bytes: size_of::<Groups>() })?;
        let node_shift = node_bytes.trailing_zeros();
        Ok(LockTable { dram, node_shift, groups, allocated_bytes: AtomicU64::new(size_of::<Groups>() as u64) })
    }
}

impl<D: Dram> LockTable<D> {
    /// Returns the bytes that it has allocated.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn lent(&self, bytes: usize) {
        self.allocated_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn given_back(&self, bytes: usize) {
        self.allocated_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the tree's order.
    pub(super) fn order(&self) -> usize {
        (1 << self.node_shift) / PAIR_BYTES as usize - 1
    }

    /// Returns the lock of a node. Nodes do not overlap, so no two nodes in a unit have the same quotient.
    #[inline]
    pub(crate) fn of(&self, node: Offset) -> Result<&NodeLock, Error> {
        let unit = (node.0 / UNIT_BYTES) as usize;
        let group =
            self.groups.get(unit / GROUP_UNITS).ok_or(Error::damaged(node, "a node is beyond the largest region"))?;
        let units = self.part(group, Layout::new::<Group>())?;
        // SAFETY: allocated for a group, zeroed, which is a group without units; freed only with the table.
        let locks = self.part(&unsafe { units.as_ref() }[unit % GROUP_UNITS], self.unit_layout())?;
        // SAFETY: allocated for this many locks, zeroed, which are free locks; freed only with the table.
        Ok(unsafe { locks.add(((node.0 % UNIT_BYTES) >> self.node_shift) as usize).as_ref() })
    }

    /// Returns the part that `part` points at, allocating it if necessary.
    fn part<T>(&self, part: &AtomicPtr<T>, layout: Layout) -> Result<NonNull<T>, Error> {
        match NonNull::new(part.load(Ordering::Acquire)) {
            Some(there) => Ok(there),
            None => self.allocate(part, layout),
        }
    }

    #[cold]
    fn allocate<T>(&self, part: &AtomicPtr<T>, layout: Layout) -> Result<NonNull<T>, Error> {
        let no_dram = HeapError::NoDram { wanted_bytes: layout.size() };
        let new = self.dram.allocate(layout).ok_or(no_dram)?;
        let installed =
            part.compare_exchange(ptr::null_mut(), new.as_ptr().cast(), Ordering::AcqRel, Ordering::Acquire);
        match installed.err().and_then(NonNull::new) {
            None => {
                self.lent(layout.size());
                Ok(new.cast())
            }
            Some(others) => {
                // SAFETY: just allocated with this layout, and no other thread has a reference to it.
                unsafe { self.dram.deallocate(new, layout) };
                Ok(others)
            }
        }
    }

    fn unit_layout(&self) -> Layout {
        Layout::array::<NodeLock>((UNIT_BYTES >> self.node_shift) as usize).expect("at most 512 locks")
    }
}

impl<D: Dram> Drop for LockTable<D> {
    fn drop(&mut self) {
        let lock_count = (UNIT_BYTES >> self.node_shift) as usize;
        for group in self.groups.iter().filter_map(|group| NonNull::new(group.load(Ordering::Acquire))) {
            // SAFETY: the table is being dropped, and its allocations, which have these layouts, are not used
            // afterwards.
            unsafe {
                for unit in group.as_ref().iter().filter_map(|unit| NonNull::new(unit.load(Ordering::Acquire))) {
                    let locks = slice::from_raw_parts(unit.as_ptr(), lock_count);
                    locks.iter().for_each(|lock| self.forget_heads(lock));
                    self.dram.deallocate(unit.cast(), self.unit_layout());
                }
                self.dram.deallocate(group.cast(), Layout::new::<Group>());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use pmem_sim::SimDram;

    use super::*;

    #[test]
    fn every_node_has_its_own_lock() {
        for node_bytes in [128, 1024, 4096] {
            let table = LockTable::new(SimDram, node_bytes).unwrap();
            let starts = (0..200).map(|i| Offset(UNIT_BYTES + 64 + i * node_bytes));
            let locks: BTreeSet<usize> = starts.map(|at| ptr::from_ref(table.of(at).unwrap()).addr()).collect();
            assert_eq!(locks.len(), 200);
            assert_eq!(ptr::from_ref(table.of(Offset(64)).unwrap()), ptr::from_ref(table.of(Offset(64)).unwrap()));
            assert!(table.of(Offset(1 << 47)).is_err());
        }
    }
}
