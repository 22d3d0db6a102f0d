//! What compaction does, as it is told.

use std::ops::ControlFlow;

/// How far a compaction has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionProgress {
    /// Items moved so far.
    pub moved_items: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// About as many bytes will have been moved in the end.
    pub moved_bytes_total: u64,
    /// Bytes given back to the file system so far.
    pub freed_bytes: u64,
}

/// Sees how far a compaction has come, and can stop it: each of its steps leaves a whole store.
pub type OnCompaction<'a> = dyn FnMut(CompactionProgress) -> ControlFlow<()> + 'a;

/// What a compaction has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompactionReport {
    /// Items moved.
    pub moved_items: u64,
    /// Their bytes: headers, keys and values.
    pub moved_bytes: u64,
    /// Bytes given back to the file system.
    pub freed_bytes: u64,
    /// Space that the region took before, holes not counted.
    pub taken_bytes_before: u64,
    /// Space that it takes now. Writers may have taken some meanwhile.
    pub taken_bytes_after: u64,
    /// Items that stayed where they were, because there was no room for a copy.
    pub left_items: u64,
    /// Where items lie that are damaged, as offsets into the region. They stayed where they were.
    pub damaged: Vec<u64>,
}

impl CompactionReport {
    /// Adds what a further pass has done.
    pub fn add(&mut self, other: &CompactionReport) {
        self.moved_items += other.moved_items;
        self.moved_bytes += other.moved_bytes;
        self.freed_bytes += other.freed_bytes;
        // What a later pass leaves, too, is counted once.
        self.left_items = other.left_items;
        self.damaged.clone_from(&other.damaged);
    }
}

/// What compaction has done since the store was opened, in the background and by request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionStats {
    /// Items moved.
    pub moved_items: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Bytes given back to the file system.
    pub freed_bytes: u64,
}
