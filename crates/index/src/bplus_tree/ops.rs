//! Applies one change to one leaf.
//!
//! A change locks the leaf from the version that its descent noted, and nothing else. If the leaf is full, or is
//! sparse afterwards, a split or a merge follows, which locks more (`split`, `merge`). After a split, the change
//! tries again.

use pmem::Dram;

use super::descent::At;
use super::inner::Seek;
use super::layout::{LEAF_COUNT_MAX, LEAF_COUNT_SPARSE, Leaf};
use super::leaf::Entry;
use super::nodes::Nodes;
use super::target::{Stop, Target};
use super::version::ObservedVersion;
use super::{Change, ChangeError, Edit, Keys};
use crate::Position;

/// The state in which a change left its leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    /// The version of the leaf now.
    pub(super) seen: ObservedVersion,
    /// True if the leaf should be merged with a neighbour.
    pub(super) is_sparse: bool,
}

impl Outcome {
    /// Returns the outcome of an edit of a leaf that had the version `seen` before.
    #[inline(always)]
    pub(super) fn of(leaf: &Leaf, seen: ObservedVersion, edit: Edit) -> Outcome {
        let is_sparse = matches!(edit, Edit::Remove(_)) && leaf.count() <= LEAF_COUNT_SPARSE;
        Outcome { seen: seen.next(), is_sparse }
    }
}

impl<D: Dram> Nodes<D> {
    /// Applies one change, with as many attempts as necessary.
    pub(super) fn apply_one<K: Keys>(&self, keys: &K, change: &Change<'_>) -> Result<(), ChangeError<K::Error>> {
        loop {
            let mut seek = Seek::At(Target::of_item(keys, change.key, change.edit.item()));
            match self.attempt(&mut seek, change.edit) {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Again | Stop::Full) => {}
            }
        }
    }

    fn attempt<K: Keys>(&self, seek: &mut Seek<'_, K>, edit: Edit) -> Result<(), Stop<K::Error>> {
        let (at, _) = self.root_word().descend(seek, |_, _, _| Ok(()))?;
        self.edit_at(at, seek, edit)
    }

    /// Applies an edit to the leaf that a descent reached. Splits a full leaf, and merges one that is sparse
    /// afterwards.
    #[inline(always)]
    pub(super) fn edit_at<K: Keys>(
        &self,
        at: At<'_, Leaf>,
        seek: &mut Seek<'_, K>,
        edit: Edit,
    ) -> Result<(), Stop<K::Error>> {
        let Seek::At(target) = &mut *seek else { unreachable!("a change always descends to a key") };
        match edit_leaf(at, target, edit) {
            Ok(outcome) => {
                if outcome.is_sparse {
                    self.merge_around(seek);
                }
                Ok(())
            }
            Err(Stop::Full) => {
                self.make_space(seek)?;
                Err(Stop::Again)
            }
            Err(stop) => Err(stop),
        }
    }
}

/// Applies an edit to the leaf of its key.
#[inline(always)]
pub(super) fn edit_leaf<K: Keys>(
    at: At<'_, Leaf>,
    target: &mut Target<'_, K>,
    edit: Edit,
) -> Result<Outcome, Stop<K::Error>> {
    let leaf = at.node;
    let lock = leaf.version.try_lock(at.seen).ok_or(Stop::Again)?;
    let result = match edit {
        Edit::Insert(new) => insert(leaf, target, new),
        Edit::Replace { old, new } => find_item(leaf, target, old).map(|index| leaf.set_position(index, new)),
        Edit::Remove(old) => find_item(leaf, target, old).map(|index| leaf.remove(index)),
    };
    match result {
        Ok(()) => Ok(Outcome::of(leaf, at.seen, edit)),
        Err(stop) => {
            lock.release_unchanged();
            Err(stop)
        }
    }
}

#[inline(always)]
fn insert<K: Keys>(leaf: &Leaf, target: &mut Target<'_, K>, new: Position) -> Result<(), Stop<K::Error>> {
    let spot = leaf.find(target, || Ok(()))?;
    if spot.is_there {
        return Err(Stop::Failed(ChangeError::Exists(leaf.position(spot.index))));
    }
    if leaf.count() == LEAF_COUNT_MAX {
        return Err(Stop::Full);
    }
    leaf.insert(spot.index, Entry { head: target.head(leaf.prefix_bytes())?, position: new });
    Ok(())
}

#[inline(always)]
fn find_item<K: Keys>(leaf: &Leaf, target: &mut Target<'_, K>, old: Position) -> Result<usize, Stop<K::Error>> {
    let head = target.head(leaf.prefix_bytes())?;
    leaf.find_item(head, old).ok_or(Stop::Failed(ChangeError::Missing(old)))
}
