//! Progress, reports and statistics of compaction.

use std::ops::ControlFlow;

/// The progress of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionProgress {
    /// Items moved so far.
    pub moved_items: u64,
    /// Bytes of the moved items.
    pub moved_bytes: u64,
    /// Estimate of the bytes that will have been moved at the end.
    pub moved_bytes_total: u64,
    /// Bytes returned to the file system so far.
    pub freed_bytes: u64,
}

/// Receives the progress of a compaction, and can stop it: after each step the store is consistent.
pub type OnCompaction<'a> = dyn FnMut(CompactionProgress) -> ControlFlow<()> + 'a;

/// The result of a compaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompactionReport {
    /// Items moved.
    pub moved_items: u64,
    /// Bytes of the moved items: headers, keys and values.
    pub moved_bytes: u64,
    /// Bytes returned to the file system.
    pub freed_bytes: u64,
    /// Storage allocated to the region before, without holes.
    pub taken_bytes_before: u64,
    /// Storage allocated to the region after. Concurrent writers may have allocated some.
    pub taken_bytes_after: u64,
    /// Items that were not moved because there was no space for a copy.
    pub left_items: u64,
    /// Offsets of damaged items in the region. They were not moved.
    pub damaged: Vec<u64>,
}

impl CompactionReport {
    /// Adds the result of a further pass.
    pub fn add(&mut self, other: &CompactionReport) {
        self.moved_items += other.moved_items;
        self.moved_bytes += other.moved_bytes;
        self.freed_bytes += other.freed_bytes;
        // The later pass reports the same items again, so its figures replace the earlier ones.
        self.left_items = other.left_items;
        self.damaged.clone_from(&other.damaged);
    }
}

/// The work of compaction since the store was opened, in the background and on request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionStats {
    /// Items moved.
    pub moved_items: u64,
    /// Bytes of the moved items.
    pub moved_bytes: u64,
    /// Bytes returned to the file system.
    pub freed_bytes: u64,
}
