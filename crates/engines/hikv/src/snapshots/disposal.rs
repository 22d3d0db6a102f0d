//! The disposal of replaced items.

use index::Position;
use index::partitioned_hash::{Context, Garbage};
use pmem::{Dram, Medium};

use super::Snapshots;
use super::kept::Kept;

/// Retires replaced items, or leaves them to snapshots.
pub(crate) struct Disposal<'a, M, D: Dram> {
    cx: Context<'a, M, D>,
    kept: &'a Kept,
}

impl Snapshots {
    /// Returns the disposal of replaced items.
    #[inline(always)]
    pub(crate) fn disposal<'a, M: Medium, D: Dram>(&'a self, cx: Context<'a, M, D>) -> Disposal<'a, M, D> {
        Disposal { cx, kept: &self.kept }
    }
}

impl<M, D: Dram> Clone for Disposal<'_, M, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, D: Dram> Copy for Disposal<'_, M, D> {}

impl<'a, M: Medium, D: Dram> Disposal<'a, M, D> {
    #[inline(always)]
    pub(crate) fn medium(self) -> &'a M {
        self.cx.medium
    }

    /// Retires the item that a write replaced, if there was one. By now only snapshots may refer to the item, and they
    /// retire the items that they keep. An item without a size class cannot have been found (damage). If the medium has
    /// failed, it may have refused the write, so that readers still find the item: then the item stays.
    #[inline(always)]
    pub(crate) fn retire(self, old: Option<Position>) {
        if let Some(position) = old
            && self.cx.medium.health().is_ok()
            && position.place().is_some()
            && !self.kept.let_go(position)
        {
            self.cx.retire(Garbage::Item(position));
        }
    }

    /// As [`Disposal::retire`], for the items that many writes replaced.
    pub(crate) fn retire_all(self, old: impl Iterator<Item = Position>) {
        if self.cx.medium.health().is_err() {
            return;
        }
        let going = old.filter(|position| position.place().is_some() && !self.kept.let_go(*position));
        self.cx.retire_all(going.map(Garbage::Item));
    }
}
