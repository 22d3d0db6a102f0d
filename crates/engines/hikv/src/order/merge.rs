//! Applies the delta to a tree that was loaded: each change sets its result, whatever the tree holds for the key.

use arrayvec::ArrayVec;
use index::bplus_tree::{self as tree, BPlusTree, ChangeError, Edit, KeyStart};
use pmem::{Dram, Medium};

use super::change::{Change, GROUP_COUNT, INLINE_BYTES};
use super::items::Items;
use crate::snapshots::Disposal;
use engine::Error;

/// Changes of a step: about a millisecond.
pub(super) const STEP_COUNT: usize = 4096;

/// Applies `changes`, then retires the items that they replaced.
pub(super) fn apply<M: Medium, D: Dram>(
    disposal: Disposal<'_, M, D>,
    tree: &BPlusTree<D>,
    changes: Vec<Change>,
) -> Result<(), Error> {
    let _pin = epoch::pin();
    let mut result = Ok(());
    for group in changes.chunks(GROUP_COUNT) {
        if result.is_ok() {
            result = apply_group(tree, disposal.medium(), group);
        }
    }
    // Even if the tree is lost: nothing else refers to these items.
    changes.iter().for_each(|change| disposal.retire(change.old));
    result
}

/// Applies changes that find the entries they expect together. If one does not, the whole group is applied again, one
/// by one: the result of each change is the same however often it is applied, if their order is kept.
fn apply_group<M: Medium, D: Dram>(tree: &BPlusTree<D>, medium: &M, group: &[Change]) -> Result<(), Error> {
    let changes: ArrayVec<_, GROUP_COUNT> = group.iter().map(tree_change).collect();
    let mut met = true;
    tree.apply(&Items(medium), &changes, |_, applied| met &= applied.is_ok());
    if met { Ok(()) } else { group.iter().try_for_each(|change| lead_to(tree, medium, change)) }
}

/// Sets the key to the change's new item, or removes it.
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

/// Returns the change in the tree's form.
pub(super) fn tree_change(change: &Change) -> tree::Change<'_> {
    let edit = match (change.old, change.new) {
        (None, Some(new)) => Edit::Insert(new),
        (Some(old), Some(new)) => Edit::Replace { old, new },
        (Some(old), None) => Edit::Remove(old),
        (None, None) => unreachable!("an empty change does not leave the queue"),
    };
    let key = change.key().map_or_else(|| KeyStart::new(change.head(), INLINE_BYTES + 1), KeyStart::whole);
    tree::Change { key, edit }
}

pub(super) fn failure(error: ChangeError<Error>, change: &Change) -> Error {
    let position = change.new.or(change.old).map_or(0, |position| position.offset().0);
    match error {
        ChangeError::Keys(error) => error,
        ChangeError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
        ChangeError::Exists(_) => {
            Error::Corrupt { offset: position, what: "a new key is already in the ordered index" }
        }
        ChangeError::Missing(_) => {
            Error::Corrupt { offset: position, what: "a changed key is not in the ordered index" }
        }
    }
}
