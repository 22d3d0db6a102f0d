//! The items, from which the tree reads keys.

use index::Position;
use index::bplus_tree::Keys;
use pmem::Medium;

use crate::item;
use engine::Error;

/// The source of the tree's keys.
pub(super) struct Items<'a, M>(pub(super) &'a M);

impl<M: Medium> Keys for Items<'_, M> {
    type Error = Error;

    fn key(&self, position: Position) -> Result<&[u8], Error> {
        // SAFETY: the tree and the build request items that are not retired, or that were not when they pinned.
        unsafe { item::read(self.0, position) }.map(|item| item.key)
    }

    fn prefetch(&self, position: Position) {
        self.0.prefetch_line(position.offset());
    }
}
