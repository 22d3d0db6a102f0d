//! Applies many changes at once, or one whose key was found before.
//!
//! The keys of a group descend together (`travel`). Then the changes are applied in their order. A change whose leaf
//! has changed since is applied separately.

use std::sync::atomic::Ordering;

use pmem::Dram;

use super::found::{Found, edit_found};
use super::inner::Seek;
use super::ops::Outcome;
use super::target::{Stop, Target};
use super::travel::{GROUP_COUNT, edit_in_turn};
use super::{BPlusTree, Change, ChangeError, Edit, KeyStart, Keys};

impl<D: Dram> BPlusTree<D> {
    /// Applies `changes` in their order, and calls `done` with the number of each when it was applied or has
    /// failed. A failed change does not prevent the others. Any number of changes is allowed; groups of 16 or more
    /// are fastest.
    pub fn apply<K: Keys>(
        &self,
        keys: &K,
        changes: &[Change<'_>],
        mut done: impl FnMut(usize, Result<(), ChangeError<K::Error>>),
    ) {
        let _pin = epoch::pin();
        for (group, changes) in changes.chunks(GROUP_COUNT).enumerate() {
            let mut growth = 0;
            self.apply_group(keys, changes, |number, result| {
                growth += if result.is_ok() { changes[number].edit.growth() } else { 0 };
                done(group * GROUP_COUNT + number, result);
            });
            self.grow(growth);
        }
    }

    fn apply_group<K: Keys>(
        &self,
        keys: &K,
        changes: &[Change<'_>],
        mut done: impl FnMut(usize, Result<(), ChangeError<K::Error>>),
    ) {
        if let [change] = changes {
            return done(0, self.nodes.apply_one(keys, change));
        }
        let target_of = |number: usize| {
            let change = changes.get(number)?;
            let target = Target::of_item(keys, change.key, change.edit.item());
            target.prefetch();
            Some(target)
        };
        let mut travellers = self.nodes.root_word().descend_together(target_of);
        for (number, change) in changes.iter().enumerate() {
            let result = match edit_in_turn(&mut travellers[..=number], change.edit) {
                Ok(is_sparse) => {
                    if let (true, Some(traveller)) = (is_sparse, &mut travellers[number]) {
                        self.nodes.merge_around(&mut traveller.seek);
                    }
                    Ok(())
                }
                Err(Stop::Failed(error)) => Err(error),
                Err(Stop::Again | Stop::Full) => self.nodes.apply_one(keys, change),
            };
            done(number, result);
        }
    }

    /// Applies a change of the key that was found.
    ///
    /// # Errors
    /// See [`ChangeError`]; the tree is as it was before.
    #[inline]
    pub fn apply_to<K: Keys>(&self, keys: &K, found: &Found<'_, '_>, edit: Edit) -> Result<(), ChangeError<K::Error>> {
        match edit_found(keys, found, edit) {
            Some(Outcome { is_sparse: false, .. }) => {}
            Some(_) => self.nodes.merge_around(&mut Seek::At(Target::whole(keys, found.key))),
            None => self.nodes.apply_one(keys, &Change { key: KeyStart::whole(found.key), edit })?,
        }
        self.grow(edit.growth());
        Ok(())
    }

    fn grow(&self, by: i64) {
        if by != 0 {
            self.item_count.fetch_add(by as u64, Ordering::Relaxed);
        }
    }
}
