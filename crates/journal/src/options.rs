//! How a journal is opened.

use std::time::Duration;

use pmem::Durability;

use crate::JournalError;
use crate::frame::{ENTRY_BYTES_MAX, ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES};
use crate::layout::FRAMES_START_BYTES;
use crate::region::PAGE_BYTES;

/// How a journal is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalOptions {
    /// The largest that the region can get.
    pub reserve_bytes: u64,
    /// Of the addresses that takes so many are kept from the start ([`pmem_os::MapOptions::kept_bytes`]).
    pub kept_bytes: u64,
    /// False changes no file.
    pub writable: bool,
    /// Asks for huge pages of memory.
    pub huge_pages: bool,
    /// What an acknowledged write survives.
    pub level: Durability,
    /// With [`Durability::Buffered`]: how long after a write a sync begins, at most, unless as many as there are lanes still run. After two of
    /// these later writers are held back (`notifier`).
    pub sync_interval: Duration,
    /// The most that the log may have, which bounds replay.
    pub log_bytes_max: u64,
    /// The log's pieces. A journal keeps the length that it was made with.
    pub segment_bytes: u64,
    /// How much of each piece has space, and is used, in a new journal and in one that was closed: more once it is written to.
    pub capacity_bytes: u64,
    /// What of the base is read into memory at once when a part of it is needed: whole pages, a power of two.
    pub block_bytes: u64,
    /// Bits that a client who stores values cannot know, so that no value passes for a frame where a log is damaged: random ones,
    /// for each opening.
    pub salt: u32,
    /// What the files lie on, for stats.
    pub name: &'static str,
    /// Threads that checkpoint and sync in the background, and read the base. Without them the threads that use the region do: a
    /// writer when the log is full, and any thread that needs a part of the base.
    pub background: bool,
}

impl Default for JournalOptions {
    /// `power`; 1 TiB, of which [`pmem_os::KEPT_BYTES`] of addresses are kept; a log of at most 256 MiB, about a second's replay, in segments of 4 MiB, of which 64 KiB each
    /// have space at first: an empty store's log stays small.
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
            salt: 0,
            name: "journal",
            background: true,
        }
    }
}

/// What gathers in memory before a thread has to write it: many entries a call, and soon written.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// What is kept free in a segment for frames that have nothing but a mark: a checkpoint appends two at most once nobody else
/// may, and opening one.
const MARKS_BYTES: usize = 4 * (FRAME_HEADER_BYTES + ENTRY_HEADER_BYTES);

/// With the shortest frames fewer than a header can count.
const LOG_BYTES_MAX: u64 = 128 << 30;

/// The least that holds a header and some frames.
const SEGMENT_BYTES_MIN: u64 = 2 * FRAMES_START_BYTES;

impl JournalOptions {
    pub(crate) fn check(&self) -> Result<(), JournalError> {
        let error = |what| Err(JournalError::Option { what });
        if self.segment_bytes < SEGMENT_BYTES_MIN || !self.segment_bytes.is_multiple_of(FRAMES_START_BYTES) {
            return error("a log segment has at least 8 KiB, and whole blocks of 4 KiB");
        }
        if self.segment_bytes > u64::from(u32::MAX) {
            return error("a log segment has less than 4 GiB");
        }
        if self.capacity_bytes < SEGMENT_BYTES_MIN || !self.capacity_bytes.is_multiple_of(FRAMES_START_BYTES) {
            return error("a log segment has space for at least 8 KiB, and for whole blocks of 4 KiB");
        }
        if !self.block_bytes.is_power_of_two() || self.block_bytes < PAGE_BYTES {
            return error("a block of the base has whole pages of 4 KiB, a power of two of them");
        }
        if self.log_bytes_max > LOG_BYTES_MAX {
            return error("a log has at most 128 GiB");
        }
        if self.segment_count_max() < 2 {
            return error("the log must have room for two segments");
        }
        Ok(())
    }

    pub(crate) fn segment_count_max(&self) -> u64 {
        self.log_bytes_max / self.segment_bytes
    }

    /// How many sealed segments a checkpoint waits for: half of the log. A page that changes often is written once then.
    pub(crate) fn checkpoint_segments(&self) -> usize {
        (self.segment_count_max() / 2).max(1) as usize
    }

    /// How much of each segment is used at first.
    pub(crate) fn first_space_bytes(&self) -> u64 {
        self.capacity_bytes.min(self.segment_bytes)
    }
}

/// The most that a frame has where segments have so much room: half of it at most, so that little is left over at its end, and the
/// marks of a checkpoint have room behind two such frames.
pub(crate) fn frame_bytes_max(capacity_bytes: u64) -> usize {
    BUFFER_BYTES_MAX.min((capacity_bytes - FRAMES_START_BYTES) as usize / 2 - MARKS_BYTES / 2)
}

/// The most that an entry holds there.
pub(crate) fn entry_bytes_max(capacity_bytes: u64) -> usize {
    let entries_bytes = (frame_bytes_max(capacity_bytes) - FRAME_HEADER_BYTES) / 2 - ENTRY_HEADER_BYTES;
    ENTRY_BYTES_MAX.min(entries_bytes & !15)
}
