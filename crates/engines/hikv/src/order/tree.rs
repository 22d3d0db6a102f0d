//! The ordered tree from the first request on, and its phase.
//!
//! | phase | writers | drainers | scans |
//! |---|---|---|---|
//! | off | take no ticket, retire replaced items | retire the old items of changes left in the queues | wait |
//! | building | take tickets | note changes in the delta, which the build merges at its end | wait |
//! | ready | take tickets | apply changes to the tree, retire the old items | run |
//!
//! # Invariants
//! - Phase and tree change together, under the tree's write lock; the tree is there exactly when the phase is ready.
//! - The phase changes from off to building only with empty queues and when no writer that saw an earlier phase is
//!   still writing. The build reads the index only when no writer that saw the phase off is still writing.
//! - While the phase is building, no item is retired that was in the index at the begin of the phase, or came later: so
//!   positions stay valid from when the build collects them until the delta is merged.

use std::ops::Bound;
use std::sync::atomic::{AtomicU8, Ordering};

use arrayvec::ArrayVec;
use index::Position;
use index::bplus_tree::BPlusTree;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use pmem::{Dram, Medium};

use super::change::{GROUP_COUNT, Group};
use super::delta::Delta;
use super::items::Items;
use super::merge;
use super::paged::{Paged, way};
use crate::canary;
use crate::snapshots::Disposal;
use engine::{Direction, Error, ScanCursor};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    Off,
    Building,
    Ready,
}

/// The place of the tree, which is empty unless the phase is ready.
pub(super) type Slot<D> = Option<BPlusTree<D>>;

/// The tree, its phase, and the changes that wait while it is built.
#[derive(Debug)]
pub(super) struct Tree<D: Dram> {
    phase: AtomicU8,
    slot: RwLock<Slot<D>>,
    delta: Delta,
}

impl<D: Dram> Default for Tree<D> {
    fn default() -> Tree<D> {
        Tree { phase: AtomicU8::new(Phase::Off as u8), slot: RwLock::new(None), delta: Delta::default() }
    }
}

impl<D: Dram> Tree<D> {
    #[inline(always)]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Off,
            1 => Phase::Building,
            _ => Phase::Ready,
        }
    }

    /// Returns the tree, which does not change while the guard is held.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Slot<D>> {
        self.slot.read()
    }

    /// Returns the tree, which no other thread uses while the guard is held.
    pub(super) fn lock(&self) -> RwLockWriteGuard<'_, Slot<D>> {
        self.slot.write()
    }

    /// Begins the phase of building.
    pub(super) fn begin(&self) {
        let _slot = self.lock();
        self.set_phase(Phase::Building);
    }

    /// Begins the phase ready, with a tree into which all of the delta was merged under the same lock.
    pub(super) fn open(&self, mut slot: RwLockWriteGuard<'_, Slot<D>>, tree: BPlusTree<D>) {
        *slot = Some(tree);
        self.set_phase(Phase::Ready);
    }

    /// Drops tree and delta, and retires the items that the delta kept. The queues stay as they are.
    pub(super) fn discard<M: Medium>(&self, disposal: Disposal<'_, M, D>) {
        let mut slot = self.lock();
        self.set_phase(Phase::Off);
        let (_tree, deferred) = (slot.take(), self.delta.take_all());
        deferred.into_iter().for_each(|change| disposal.retire(change.old));
    }

    /// Sets the phase. The caller holds the tree's write lock.
    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Applies a group of changes, or notes them in the delta, and retires the replaced items; returns false if the
    /// delta is full.
    pub(super) fn apply<M: Medium>(
        &self,
        disposal: Disposal<'_, M, D>,
        group: &Group,
        insist: bool,
    ) -> Result<bool, Error> {
        let slot = self.read();
        match (&*slot, self.phase()) {
            (Some(tree), _) => apply(tree, disposal.medium(), group)?,
            (None, Phase::Building) if !disposal.medium().breaks(canary::CHANGE_MISSES_DELTA) => {
                return Ok(self.delta.push(group, insist));
            }
            (None, _) => {}
        }
        drop(slot);
        group.iter().for_each(|change| disposal.retire(change.old));
        Ok(true)
    }

    /// Returns the number of changes that wait for the end of the build.
    pub(super) fn delta_count(&self) -> u64 {
        self.delta.len()
    }

    /// Merges at most `count` of the waiting changes into a tree that was loaded.
    pub(super) fn merge<M: Medium>(
        &self,
        disposal: Disposal<'_, M, D>,
        loaded: &BPlusTree<D>,
        count: usize,
    ) -> Result<(), Error> {
        merge::apply(disposal, loaded, self.delta.take(count))
    }

    /// Returns the number of ordered keys, if there is a tree.
    pub(super) fn key_count(&self) -> Option<u64> {
        self.read().as_ref().map(BPlusTree::len)
    }

    /// Calls `each` with every item in key order, if there is a tree; returns their number.
    pub(super) fn each_sorted<M: Medium>(&self, medium: &M, each: &mut dyn FnMut(Position)) -> Result<u64, Error> {
        let (mut cursor, mut count) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), 0);
        let slot = self.read();
        let Some(tree) = &*slot else { return Ok(0) };
        loop {
            let (from, direction, page) = cursor.parts();
            tree.read_page(&Items(medium), from, way(direction), page)?;
            page.positions().iter().for_each(|&position| each(position));
            count += page.positions().len() as u64;
            if !cursor.follow_page() {
                return Ok(count);
            }
        }
    }
}

/// Applies a group to the tree.
fn apply<M: Medium, D: Dram>(tree: &BPlusTree<D>, medium: &M, group: &Group) -> Result<(), Error> {
    let changes: ArrayVec<_, GROUP_COUNT> = group.iter().map(merge::tree_change).collect();
    let mut result = Ok(());
    tree.apply(&Items(medium), &changes, |number, applied| {
        if let Err(error) = applied {
            result = Err(merge::failure(error, &group[number]));
        }
    });
    result
}
