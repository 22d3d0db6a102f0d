//! Room: for records, for segments, and in the log.
//!
//! The log has a bound. A writer that finds it at the bound makes a checkpoint before it takes any lock; the background makes
//! one at half of it. Where a region is full, the room of records that readers have left is looked for first; then a checkpoint
//! gives back segments. Each lane keeps a segment ahead of need that only deletes may begin, so in a full region a thousand deletes of a
//! lane find room even if no checkpoint does.

use engine::Error;
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::Pmekv;

/// How often a writer in a full region lets readers run that keep retired records: some tens of milliseconds.
const READER_WAITS_MAX: usize = 100;
/// The log has an entry for so many keys, at most, where that is more than its bound.
const KEYS_PER_ENTRY: u64 = 4;

impl<M: Medium, D: Dram> Pmekv<M, D> {
    fn log_entry_count_max(&self) -> u64 {
        self.options.log_entry_count_max.max(self.tree.len() / KEYS_PER_ENTRY)
    }

    /// True if the background should make a checkpoint.
    pub(crate) fn is_log_half_full(&self) -> bool {
        self.lanes.entry_count() >= self.log_entry_count_max().div_ceil(2)
    }

    /// Comes before a write takes a lock: the log has room.
    pub(crate) fn bound_log(&self) -> Result<(), Error> {
        if self.lanes.entry_count() >= self.log_entry_count_max() { self.shorten_log() } else { Ok(()) }
    }

    /// A writer that comes while another makes the checkpoint waits for it.
    #[cold]
    fn shorten_log(&self) -> Result<(), Error> {
        let mut checkpoint = self.checkpoint.lock();
        if self.lanes.entry_count() < self.log_entry_count_max() {
            return Ok(());
        }
        match self.make_checkpoint(&mut checkpoint) {
            // The write itself may yet find room: a delete does.
            Err(error) if is_full(&error) => Ok(()),
            done => done,
        }
    }

    /// Tries a second time what found the region full. The caller is not pinned, or what waits for it would not be freed.
    pub(crate) fn with_room<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        match attempt() {
            Err(error) if is_full(&error) => {
                self.make_room()?;
                attempt()
            }
            done => done,
        }
    }

    #[cold]
    fn make_room(&self) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        for _ in 0..READER_WAITS_MAX {
            self.collect();
            if self.limbo.is_empty() || epoch::is_pinned() {
                break;
            }
            backoff.relax();
        }
        let mut checkpoint = self.checkpoint.lock();
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
