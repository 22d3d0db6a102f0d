//! Descents of several keys, which are interleaved so that their cache misses overlap.
//!
//! A group descends level by level. Each key prefetches its next node before the other keys take a step.

use super::descent::{At, Near, Root, RootWord, prefetch};
use super::inner::Seek;
use super::layout::{HEAD_BYTES, Inner, Leaf, SEPARATOR_COUNT_MAX};
use super::ops::edit_leaf;
use super::target::{Stop, Target};
use super::{Edit, Keys};

/// The number of keys in a group: as many as a core can have cache misses in flight.
pub const GROUP_COUNT: usize = 16;

/// The bytes of an inner node that a step reads for any key: all heads.
const INNER_PREFETCHED_BYTES: usize = std::mem::offset_of!(Inner, heads) + SEPARATOR_COUNT_MAX * HEAD_BYTES;

/// One key during its descent.
pub(super) struct DescendingKey<'t, 'k, K> {
    pub(super) seek: Seek<'k, K>,
    from: Option<At<'t, Inner>>,
    node: *mut u8,
    /// The leaf that it reached, or `None` if the descent failed.
    pub(super) leaf: Option<At<'t, Leaf>>,
    is_lost: bool,
}

impl RootWord {
    /// Descends to the leaves of the keys that `target_of` returns for the numbers from 0 on.
    #[inline(always)]
    pub(super) fn descend_together<'t, 'k, K: Keys>(
        &'t self,
        target_of: impl Fn(usize) -> Option<Target<'k, K>>,
    ) -> [Option<DescendingKey<'t, 'k, K>>; GROUP_COUNT] {
        let root = self.root();
        let mut travellers = self.descend_to_leaves(root, target_of);
        for traveller in travellers.iter_mut().flatten() {
            traveller.leaf = traveller.land(self, root).ok();
        }
        travellers
    }

    /// The same, up to the leaves, which are prefetched but not read.
    #[inline(always)]
    pub(super) fn descend_to_leaves<'t, 'k, K: Keys>(
        &'t self,
        root: Root,
        target_of: impl Fn(usize) -> Option<Target<'k, K>>,
    ) -> [Option<DescendingKey<'t, 'k, K>>; GROUP_COUNT] {
        let mut travellers: [Option<DescendingKey<'t, 'k, K>>; GROUP_COUNT] = std::array::from_fn(|number| {
            let seek = Seek::At(target_of(number)?);
            Some(DescendingKey { seek, from: None, node: root.node(), leaf: None, is_lost: false })
        });
        for level in (1..=root.height()).rev() {
            for traveller in travellers.iter_mut().flatten() {
                let moved = traveller.step(self, root, level);
                traveller.is_lost |= moved.is_err();
            }
        }
        travellers
    }
}

impl<'t, K: Keys> DescendingKey<'t, '_, K> {
    #[inline(always)]
    fn step(&mut self, tree: &'t RootWord, root: Root, level: usize) -> Result<(), Stop<K::Error>> {
        self.check()?;
        let inner = tree.inner(self.node);
        let at = tree.arrive(root, self.from, inner, inner.version.try_read())?;
        let index = inner.child_index(at.seen, &mut self.seek)?;
        (self.node, self.from) = (inner.child(index), Some(at));
        prefetch(self.node, if level == 1 { size_of::<Leaf>() } else { INNER_PREFETCHED_BYTES });
        Ok(())
    }

    #[inline(always)]
    fn land(&self, tree: &'t RootWord, root: Root) -> Result<At<'t, Leaf>, Stop<K::Error>> {
        self.check()?;
        let leaf = tree.leaf(self.node);
        tree.arrive(root, self.from, leaf, leaf.version.try_read())
    }

    /// Returns the prefetched leaf, unless the descent failed.
    #[inline(always)]
    pub(super) fn near(&self, root: Root) -> Option<Near<'t>> {
        self.check().ok()?;
        Some(Near { root, parent: self.from, node: self.node })
    }

    /// Returns an error unless the node's address is valid: the node that contained it must be unchanged.
    #[inline(always)]
    fn check(&self) -> Result<(), Stop<K::Error>> {
        if self.is_lost {
            return Err(Stop::Again);
        }
        self.from.map_or(Ok(()), |from| from.node.check(from.seen))
    }

    /// Adopts the version of the last traveller before this one that reached the same leaf; returns false if there
    /// is none.
    ///
    /// That traveller's lock proved that the leaf was unchanged since both had reached it, and its edit moved no
    /// fence.
    #[cold]
    fn catch_up(&mut self, before: &[Option<DescendingKey<'t, '_, K>>]) -> bool {
        let Some(mine) = &mut self.leaf else { return false };
        let mut leaves = before.iter().rev().flatten().filter_map(|other| other.leaf);
        let Some(other) = leaves.find(|other| std::ptr::eq(other.node, mine.node)) else { return false };
        mine.seen = other.seen;
        true
    }

    /// Applies the edit to the leaf that was reached; returns true if the leaf is sparse now.
    #[inline(always)]
    fn edit_leaf(&mut self, edit: Edit) -> Result<bool, Stop<K::Error>> {
        let (Seek::At(target), Some(at)) = (&mut self.seek, &mut self.leaf) else { return Err(Stop::Again) };
        let outcome = edit_leaf(*at, target, edit)?;
        at.seen = outcome.seen;
        Ok(outcome.is_sparse)
    }
}

/// Applies the edit of the last traveller. If an earlier one changed the same leaf, the expected version is the one
/// that it left.
#[inline(always)]
pub(super) fn edit_in_turn<K: Keys>(
    travellers: &mut [Option<DescendingKey<'_, '_, K>>],
    edit: Edit,
) -> Result<bool, Stop<K::Error>> {
    let Some((Some(last), before)) = travellers.split_last_mut() else { return Err(Stop::Again) };
    match last.edit_leaf(edit) {
        Err(Stop::Again) if last.catch_up(before) => last.edit_leaf(edit),
        result => result,
    }
}
