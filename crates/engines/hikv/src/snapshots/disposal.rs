//! The disposal of replaced items.

use index::Position;
use index::partitioned_hash::{Context, Garbage};
use pmem::{Dram, Medium};

use super::Snapshots;

/// Retires replaced items, or leaves them to snapshots.
pub(crate) struct Disposal<'a, M, D: Dram> {
    pub(crate) medium: &'a M,
    pub(super) index: Context<'a, M, D>,
    pub(super) snapshots: &'a Snapshots,
}

impl<M, D: Dram> Clone for Disposal<'_, M, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, D: Dram> Copy for Disposal<'_, M, D> {}

impl<M: Medium, D: Dram> Disposal<'_, M, D> {
    /// Retires the item that a write replaced, if there was one. By now only snapshots may refer to the item, and they
    /// retire the items that they keep. An item without a size class cannot have been found (damage). If the medium has
    /// failed, it may have refused the write, so that readers still find the item: then the item stays.
    #[inline(always)]
    pub(crate) fn retire(self, old: Option<Position>) {
        if let Some(position) = old
            && self.medium.health().is_ok()
            && position.place().is_some()
            && !self.snapshots.kept.let_go(position)
        {
            self.index.retire(Garbage::Item(position));
        }
    }

    /// As [`Disposal::retire`], for the items that many writes replaced.
    pub(crate) fn retire_all(self, old: impl Iterator<Item = Position>) {
        if self.medium.health().is_err() {
            return;
        }
        let going = old.filter(|position| position.place().is_some() && !self.snapshots.kept.let_go(*position));
        self.index.retire_all(going.map(Garbage::Item));
    }
}
