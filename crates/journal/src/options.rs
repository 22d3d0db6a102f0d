//! The options of a journal.

use std::time::Duration;

use pmem::Durability;

use crate::JournalError;
use crate::frame::{ENTRY_BYTES_MAX, ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES};
use crate::layout::FRAMES_START_BYTES;
use crate::region::PAGE_BYTES;

/// The options of opening a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalOptions {
    /// The largest possible size of the region.
    pub reserve_bytes: u64,
    /// Number of addresses, of these, that are reserved from the start ([`pmem_os::MapOptions::kept_bytes`]).
    pub kept_bytes: u64,
    /// False opens for reading, which changes no file.
    pub writable: bool,
    /// Requests huge pages of memory.
    pub huge_pages: bool,
    /// The failures that an acknowledged write survives.
    pub level: Durability,
    /// The longest time from a write until a sync for it begins, with [`Durability::Buffered`]. It is exceeded only
    /// while as many syncs run as there are lanes. After two of these intervals, later writers are held back
    /// (`notifier`).
    pub sync_interval: Duration,
    /// The largest size of the log, which bounds replay.
    pub log_bytes_max: u64,
    /// Length of the log's segments. A journal keeps the length that it was created with.
    pub segment_bytes: u64,
    /// Usable space of each segment in a new or closed journal; it grows with writes.
    pub capacity_bytes: u64,
    /// Unit in which the base is read into memory when a part of it is needed: complete pages, a power of two.
    pub block_bytes: u64,
    /// The largest memory for the region's pages. `None` keeps the whole region in memory. Otherwise pages are read
    /// when they are needed, and their memory is freed when more is needed; then every thread that uses the region is
    /// pinned (crate `epoch`) while it does. Operations under way may exceed it, as may pages that are used without a
    /// pin.
    pub memory_bytes_max: Option<u64>,
    /// Bits that a client who stores values cannot know, so that no value can look like a frame in a damaged log.
    /// Pass new random bits for each opening.
    pub salt: u32,
    /// The kind of storage of the files, for statistics.
    pub name: &'static str,
    /// Starts threads that checkpoint and sync in the background, and read the base. Without them, the threads that
    /// use the region do this work: a writer when the log is full, and any thread that needs a part of the base.
    pub background: bool,
}

impl Default for JournalOptions {
    /// Returns these options: level `power`; 1 TiB, of which [`pmem_os::KEPT_BYTES`] addresses are reserved from
    /// the start; a log of at most 256 MiB, about one second of replay. Its segments have 4 MiB, of which 64 KiB
    /// each are allocated at first, so an empty store's log stays small.
    fn default() -> JournalOptions {
        JournalOptions {
            reserve_bytes: 1 << 40,
            kept_bytes: pmem_os::KEPT_BYTES,
            writable: true,
            huge_pages: true,
            level: Durability::Power,
            sync_interval: Duration::from_millis(100),
            log_bytes_max: 256 << 20,
            segment_bytes: 4 << 20,
            capacity_bytes: 64 << 10,
            block_bytes: 64 << 10,
            memory_bytes_max: None,
            salt: 0,
            name: "journal",
            background: true,
        }
    }
}

/// Bytes that gather in memory before a thread has to write them: many entries per call, and soon written.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Space kept free in a segment for frames with only a mark: a checkpoint appends at most two once no other thread
/// may append, and opening appends one.
const MARKS_BYTES: usize = 4 * (FRAME_HEADER_BYTES + ENTRY_HEADER_BYTES);

/// With the shortest frames, a log of this length has fewer frames than a header can count.
const LOG_BYTES_MAX: u64 = 128 << 30;

/// The least memory for pages.
const MEMORY_BYTES_MIN: u64 = PAGE_BYTES;

/// The least length that holds a header and some frames.
const SEGMENT_BYTES_MIN: u64 = 2 * FRAMES_START_BYTES;

impl JournalOptions {
    pub(crate) fn check(&self) -> Result<(), JournalError> {
        let error = |what| Err(JournalError::Option { what });
        if self.segment_bytes < SEGMENT_BYTES_MIN || !self.segment_bytes.is_multiple_of(FRAMES_START_BYTES) {
            return error("a log segment must have at least 8 KiB, and a multiple of 4 KiB");
        }
        if self.segment_bytes > u64::from(u32::MAX) {
            return error("a log segment must have less than 4 GiB");
        }
        if self.capacity_bytes < SEGMENT_BYTES_MIN || !self.capacity_bytes.is_multiple_of(FRAMES_START_BYTES) {
            return error("a log segment has space for at least 8 KiB, and for whole blocks of 4 KiB");
        }
        if !self.block_bytes.is_power_of_two() || self.block_bytes < PAGE_BYTES {
            return error("a block of the base must have 4 KiB, or that times a power of two");
        }
        if self.memory_bytes_max.is_some_and(|bytes| bytes < MEMORY_BYTES_MIN) {
            return error("the memory for the region must be at least one page of 4 KiB");
        }
        if self.log_bytes_max > LOG_BYTES_MAX {
            return error("the log's limit must be at most 128 GiB");
        }
        if self.segment_count_max() < 2 {
            return error("the log's limit must allow for two segments");
        }
        Ok(())
    }

    /// Returns the unit in which the base is read: blocks, or pages if these may be evicted.
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.memory_bytes_max.map_or(self.block_bytes, |_| PAGE_BYTES)
    }

    /// Returns true if the kernel is asked for huge pages. Evicted pages are small.
    pub(crate) fn has_huge_pages(&self) -> bool {
        self.huge_pages && self.memory_bytes_max.is_none()
    }

    pub(crate) fn segment_count_max(&self) -> u64 {
        self.log_bytes_max / self.segment_bytes
    }

    /// Returns the number of sealed segments at which a checkpoint begins: half of the log. Then a page that
    /// changes often is written once.
    pub(crate) fn checkpoint_segments(&self) -> usize {
        (self.segment_count_max() / 2).max(1) as usize
    }

    /// Returns the usable space of each segment at first.
    pub(crate) fn first_space_bytes(&self) -> u64 {
        self.capacity_bytes.min(self.segment_bytes)
    }
}

/// Returns the largest length of a frame, for segments with this usable space. It is at most half of it, so that
/// little is left over at the end, and a checkpoint's marks fit behind two such frames.
pub(crate) fn frame_bytes_max(capacity_bytes: u64) -> usize {
    BUFFER_BYTES_MAX.min((capacity_bytes - FRAMES_START_BYTES) as usize / 2 - MARKS_BYTES / 2)
}

/// Returns the largest length of an entry, for segments with this usable space.
pub(crate) fn entry_bytes_max(capacity_bytes: u64) -> usize {
    let entries_bytes = (frame_bytes_max(capacity_bytes) - FRAME_HEADER_BYTES) / 2 - ENTRY_HEADER_BYTES;
    ENTRY_BYTES_MAX.min(entries_bytes & !15)
}
