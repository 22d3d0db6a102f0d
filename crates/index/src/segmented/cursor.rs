//! The progress of a walk over all segments.

use super::Segmented;
use super::layout::{DEPTH_MAX, PARTITION_COUNT_MAX};

/// The progress of a walk: a partition, and its first signature prefix that was not visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    pub(crate) partition: usize,
    /// The prefix, aligned to the left of 64 bits.
    pub(crate) prefix: u64,
    pub(crate) done: bool,
}

impl Cursor {
    /// Returns the cursor of a walk that begins with this partition.
    #[must_use]
    pub fn of_partition(partition: usize) -> Cursor {
        Cursor { partition, ..Cursor::default() }
    }

    /// Returns true until every segment of the partition was visited, for a walk that began with it.
    #[must_use]
    pub fn is_in(self, partition: usize) -> bool {
        self.partition == partition
    }

    /// Returns true when every segment was visited.
    #[must_use]
    pub fn is_done(self) -> bool {
        self.done
    }

    /// Returns the cursor as a number that outlives the walk, growth and restarts. It is 0 both at the beginning
    /// and at the end of a walk.
    #[must_use]
    pub fn number(self) -> u64 {
        if self.done { 0 } else { (self.partition as u64) << NUMBER_PREFIX_BITS | self.prefix >> NUMBER_PARTITION_BITS }
    }

    /// Returns the cursor of a number, even of an invented one. A walk from there visits the segments ahead of it.
    #[must_use]
    pub fn from_number(number: u64) -> Cursor {
        let partition = (number >> NUMBER_PREFIX_BITS) as usize;
        Cursor { partition, prefix: number << NUMBER_PARTITION_BITS, done: false }
    }

    pub(crate) fn partition(self) -> usize {
        self.partition
    }

    pub(crate) fn past(self, segment: &impl Segmented, partition_count: usize) -> Cursor {
        let step = 1u64.checked_shl(64 - segment.depth()).unwrap_or(0);
        let start = (segment.prefix() << 1).checked_shl(63 - segment.depth()).unwrap_or(0);
        let (prefix, wrapped) = if step == 0 { (0, true) } else { start.overflowing_add(step) };
        let partition = self.partition + usize::from(wrapped);
        Cursor { partition, prefix, done: partition == partition_count }
    }
}

/// A cursor's number: the partition, as in a store with the most partitions, then the prefix, which is never
/// longer.
const NUMBER_PARTITION_BITS: u32 = PARTITION_COUNT_MAX.trailing_zeros();
const NUMBER_PREFIX_BITS: u32 = u64::BITS - NUMBER_PARTITION_BITS;
const _: () = assert!(DEPTH_MAX <= NUMBER_PREFIX_BITS);
