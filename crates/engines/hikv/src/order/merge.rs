//! Applying the delta to a tree that was loaded: each change as what it leads to, whatever the tree has for the key.

use arrayvec::ArrayVec;
use index::bplus_tree::{self as tree, BPlusTree, ChangeError, Edit};
use pmem::{Dram, Medium};

use super::change::{Change, GROUP_COUNT};
use super::drain::{failure, tree_change};
use super::items::Items;
use crate::snapshots::Disposal;
use engine::Error;

/// Changes of a step: about a millisecond.
pub(super) const STEP_COUNT: usize = 4096;

/// Applies `changes`, then retires what they replaced.
pub(super) fn apply<M: Medium, D: Dram>(
    disposal: Disposal<'_, M, D>,
    tree: &BPlusTree<D>,
    changes: Vec<Change>,
) -> Result<(), Error> {
    let _pin = epoch::pin();
    let mut result = Ok(());
    for group in changes.chunks(GROUP_COUNT) {
        if result.is_ok() {
            result = apply_group(tree, disposal.medium, group);
        }
    }
    // Even where the tree is lost: nothing else knows of these items.
    changes.iter().for_each(|change| disposal.retire(change.old));
    result
}

/// Changes that find what they expect are applied together. Where one does not, the whole group is applied again, one by
/// one: what each leads to is the same however often it is applied, as long as they come in order.
fn apply_group<M: Medium, D: Dram>(tree: &BPlusTree<D>, medium: &M, group: &[Change]) -> Result<(), Error> {
    let changes: ArrayVec<_, GROUP_COUNT> = group.iter().map(tree_change).collect();
    let mut met = true;
    tree.apply(&Items(medium), &changes, |_, applied| met &= applied.is_ok());
    if met { Ok(()) } else { group.iter().try_for_each(|change| lead_to(tree, medium, change)) }
}

/// Brings the key to the change's new item, or to none.
fn lead_to<M: Medium, D: Dram>(tree: &BPlusTree<D>, medium: &M, change: &Change) -> Result<(), Error> {
    let mut next = tree_change(change);
    loop {
        next.edit = match (apply_one(tree, medium, next), change.new) {
            (Ok(()), _) | (Err(ChangeError::Missing(_)), None) => return Ok(()),
            (Err(ChangeError::Missing(_)), Some(new)) => Edit::Insert(new),
            (Err(ChangeError::Exists(there)), Some(new)) if there == new => return Ok(()),
            (Err(ChangeError::Exists(old)), Some(new)) => Edit::Replace { old, new },
            (Err(error), _) => return Err(failure(error, change)),
        };
    }
}

fn apply_one<M: Medium, D: Dram>(
    tree: &BPlusTree<D>,
    medium: &M,
    change: tree::Change<'_>,
) -> Result<(), ChangeError<Error>> {
    let mut result = Ok(());
    tree.apply(&Items(medium), &[change], |_, applied| result = applied);
    result
}
