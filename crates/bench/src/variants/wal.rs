//! HiKV-wal: a write-ahead log guarantees what ordered writes do otherwise (section 4.5). A put first writes key and value to a log and persists that,
//! then it writes the item and the entry: three persists. A delete logs its key: two.
//!
//! The log is a ring of records in lanes beside the store, on the same file system and as slow. It is never read: what follows are the
//! store's own writes, whose order makes them consistent without the log. So what is measured is what a log costs, not what one could
//! save (the order between item and entry, which is a fence that also is the item's persist).
//!
//! # Limits
//! - A record, that is key, value and 16 bytes in whole lines, is [`Wal::RECORD_BYTES_MAX`] long at most; a longer one is refused before anything is written.
//! - As many threads log at the same time as there are lanes, 16; more wait for one another.
//! - Writes are single puts and deletes, which is what workloads do: batches and conditional writes are not logged.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pmem::{Bytes, Delays, LINE_BYTES, Latency, Level, Medium, Offset, Persist, PersistCounts, Probed};
use pmem_os::{MapError, MapOptions, Mapped};

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::{Error, Persists};

/// Where the log lies: counted, and as slow as the store's medium.
pub type WalMedium = Probed<Mapped, (Delays, PersistCounts)>;

/// Two lengths before key and value.
const HEADER_BYTES: u64 = 16;
/// Threads that log at the same time.
const LANE_COUNT: usize = 16;
/// Far more than the longest record that is measured, and small beside a store.
const LANE_BYTES: u64 = 4 << 20;

/// The log.
#[derive(Debug)]
pub struct Wal {
    medium: WalMedium,
    /// How far each lane is written. Its holder alone uses the lane.
    lanes: [Mutex<u64>; LANE_COUNT],
    next: AtomicUsize,
}

impl Wal {
    /// The longest record.
    pub const RECORD_BYTES_MAX: u64 = LANE_BYTES;

    /// How long the record of a put is: whole lines.
    #[must_use]
    pub const fn record_bytes(key_bytes: u64, value_bytes: u64) -> u64 {
        (HEADER_BYTES + key_bytes + value_bytes).next_multiple_of(LINE_BYTES)
    }

    /// A log in the new file `path`.
    ///
    /// # Errors
    /// If the file cannot be made or mapped.
    pub fn create(path: &Path, latency: Latency) -> Result<Wal, MapError> {
        let file = Mapped::create(path, LANE_COUNT as u64 * LANE_BYTES, MapOptions::default())?;
        let medium = Probed::with_probe(file, (Delays::new(latency), PersistCounts::default()));
        Ok(Wal { medium, lanes: Default::default(), next: AtomicUsize::new(0) })
    }

    /// Writes a record and waits until it is durable.
    fn append(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let lengths = [key.len() as u64, value.len() as u64];
        let header = lengths.map(u64::to_le_bytes).concat();
        let record_bytes = Wal::record_bytes(key.len() as u64, value.len() as u64);
        if record_bytes > Wal::RECORD_BYTES_MAX {
            return Err(hikv::Error::NoMemory { wanted_bytes: record_bytes as usize }.into());
        }
        let (lane, mut written) = self.lane();
        if *written + record_bytes > LANE_BYTES {
            *written = 0;
        }
        let at = Offset(lane as u64 * LANE_BYTES + *written);
        // SAFETY: the lane is this thread's while it has its lock, and nothing refers into it; the record ends within it.
        unsafe { self.medium.stream(at, &[&header, key, value]) };
        *written += record_bytes;
        let ticket = self.medium.commit(Level::Strongest);
        self.medium.wait(ticket)?;
        Ok(())
    }

    /// A lane that no other thread uses, or the next one.
    fn lane(&self) -> (usize, parking_lot::MutexGuard<'_, u64>) {
        let free = self.lanes.iter().enumerate().find_map(|(lane, lock)| Some((lane, lock.try_lock()?)));
        free.unwrap_or_else(|| {
            let lane = self.next.fetch_add(1, Ordering::Relaxed) % LANE_COUNT;
            (lane, self.lanes[lane].lock())
        })
    }
}

impl Way for Wal {
    fn name(&self) -> &'static str {
        "wal"
    }

    fn around_write<R>(
        &self,
        _store: &Candidate,
        key: &[u8],
        what: Write<'_>,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        match what {
            Write::Put(value) => self.append(key, value)?,
            Write::Delete => self.append(key, &[])?,
        }
        write()
    }

    fn persists(&self) -> Persists {
        self.medium.counts().map_or_else(Persists::default, |counts| Persists {
            flushed_line_count: counts.flushed_line_count,
            fence_count: counts.fence_count,
        })
    }
}
