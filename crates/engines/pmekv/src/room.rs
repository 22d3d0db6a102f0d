//! Room: for records, for segments, and in the log.
//!
//! The log has a bound. A writer that finds it at the bound makes a checkpoint before it takes any lock; the background makes
//! one at half of it. Where a region is full, the room of records that readers have left is looked for first; then a checkpoint
//! gives back segments. Each lane keeps a segment ahead of need that only deletes may begin, so in a full region a thousand deletes of a
//! lane find room even if no checkpoint does.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::Error;
use parking_lot::Mutex;
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::Pmekv;
use crate::layout::{NODE_BYTES, NODE_KEY_COUNT_MAX};

/// How often a writer in a full region lets readers run that keep retired records: some tens of milliseconds.
const READER_WAITS_MAX: usize = 100;
/// The log has an entry for so many keys, at most, where that is more than its bound.
const KEYS_PER_ENTRY: u64 = 4;

/// How things were when a checkpoint found no room.
#[derive(Clone, Copy)]
struct Vain {
    freed_bytes: u64,
    spare_bytes: u64,
    entry_count: u64,
    /// What its nodes lacked.
    lacking_bytes: u64,
}

/// Whether there is room for a checkpoint, as far as the last one tells.
#[derive(Default)]
pub(crate) struct Room {
    /// Bytes of records that were freed.
    freed_bytes: AtomicU64,
    vain: Mutex<Option<Vain>>,
}

impl Room {
    pub(crate) fn count_freed(&self, bytes: u64) {
        self.freed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A checkpoint has found room.
    pub(crate) fn is_found(&self) {
        *self.vain.lock() = None;
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// A checkpoint found room for so many nodes, which are freed again, and no more.
    pub(crate) fn note_vain(&self, node_count: u64) {
        let lacking = self.tree.len().div_ceil(NODE_KEY_COUNT_MAX as u64).saturating_sub(node_count).max(1);
        *self.room.vain.lock() = Some(Vain {
            freed_bytes: self.room.freed_bytes.load(Ordering::Relaxed),
            spare_bytes: self.heap.spare_bytes(),
            entry_count: self.lanes.entry_count(),
            lacking_bytes: lacking * NODE_BYTES,
        });
    }

    /// A checkpoint would find no room, as the last one found none: not so much was freed, the region is no larger, and the log has not
    /// grown by so much that trying is cheap beside it.
    fn is_vain(&self) -> bool {
        let grown = |vain: Vain| self.lanes.entry_count().saturating_sub(vain.entry_count);
        self.room.vain.lock().is_some_and(|vain| {
            self.room.freed_bytes.load(Ordering::Relaxed) - vain.freed_bytes < vain.lacking_bytes
                && self.heap.spare_bytes() <= vain.spare_bytes
                && grown(vain) <= self.tree.len() / KEYS_PER_ENTRY
        })
    }

    fn log_entry_count_max(&self) -> u64 {
        self.options.log_entry_count_max.max(self.tree.len() / KEYS_PER_ENTRY)
    }

    /// True if the background should make a checkpoint.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.lanes.entry_count() >= self.log_entry_count_max().div_ceil(2) && !self.is_vain()
    }

    /// Comes before a write takes a lock: the log has room.
    pub(crate) fn bound_log(&self) -> Result<(), Error> {
        if self.lanes.entry_count() >= self.log_entry_count_max() { self.shorten_log() } else { Ok(()) }
    }

    /// A writer that comes while another makes the checkpoint waits for it.
    #[cold]
    fn shorten_log(&self) -> Result<(), Error> {
        let mut checkpoint = self.checkpoint.lock();
        if self.lanes.entry_count() < self.log_entry_count_max() || self.is_vain() {
            return Ok(());
        }
        match self.make_checkpoint(&mut checkpoint) {
            // The write itself may yet find room: a delete does.
            Err(error) if is_full(&error) => Ok(()),
            done => done,
        }
    }

    /// Tries a second time what found the region full. The caller is not pinned, or what waits for it would not be freed.
    pub(crate) fn with_room<T>(&self, attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.with_room_by(|| !self.is_vain(), attempt)
    }

    /// The same for what frees room and has to be done for that: a checkpoint is tried in any case.
    pub(crate) fn with_all_room<T>(&self, attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.with_room_by(|| true, attempt)
    }

    fn with_room_by<T>(
        &self,
        may_checkpoint: impl Fn() -> bool,
        mut attempt: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match attempt() {
            Err(error) if is_full(&error) => {
                self.make_room(may_checkpoint)?;
                attempt()
            }
            done => done,
        }
    }

    #[cold]
    fn make_room(&self, may_checkpoint: impl Fn() -> bool) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        for _ in 0..READER_WAITS_MAX {
            self.collect();
            if self.limbo.is_empty() || epoch::is_pinned() {
                break;
            }
            backoff.relax();
        }
        let mut checkpoint = self.checkpoint.lock();
        if !may_checkpoint() {
            return Ok(());
        }
        match self.make_checkpoint(&mut checkpoint) {
            Err(error) if is_full(&error) => Ok(()),
            done => done,
        }
    }

    /// Frees the records that no reader can look at any more; true if there were any.
    pub(crate) fn collect(&self) -> bool {
        self.limbo.collect(|free| self.free(free))
    }
}

pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. }))
}
