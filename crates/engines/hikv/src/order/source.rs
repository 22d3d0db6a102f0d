//! The parts of a store that its order is built from.

use index::PartitionedHash;
use pmem::Dram;

use crate::image::CleanImage;
use crate::snapshots::Disposal;

/// The keys to put in order, and the disposal of items that the order no longer needs.
pub(crate) struct Source<'a, M, D: Dram> {
    pub(crate) index: &'a PartitionedHash,
    pub(crate) image: &'a CleanImage,
    pub(crate) disposal: Disposal<'a, M, D>,
}

impl<M, D: Dram> Clone for Source<'_, M, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, D: Dram> Copy for Source<'_, M, D> {}
