//! HiKV-wal: a write-ahead log provides the consistency that HiKV gets from ordered writes (section 4.5). A put first
//! writes key and value to a log and persists the record, then it writes the item and the entry: three persists. A
//! delete logs its key: two.
//!
//! The log is a ring of records in lanes outside the store, on the same file system and with the same delays. No code
//! reads the log, because the store's own writes follow, whose order makes the store consistent without a log. So this
//! measures the cost of a log, and not the possible saving (the order between item and entry, a fence that also
//! persists the item).
//!
//! # Limits
//! - A record (key, value and 16 bytes, in complete lines) is at most [`Wal::RECORD_BYTES_MAX`] long; a longer one is
//!   refused before anything is written.
//! - As many threads log at the same time as there are lanes, 16; more threads wait for one another.
//! - Writes are single puts and deletes, as the workloads make them: batches and conditional writes are not logged.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pmem::{Bytes, Delays, LINE_BYTES, Latency, Level, Medium, Offset, Persist, PersistCounts, Probed};
use pmem_os::{HostDram, MapError, MapOptions, Mapped};

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::{Error, Persists};

/// The log's medium: counted, and with the same delays as the store's medium.
pub type WalMedium = Probed<Mapped, (Delays, PersistCounts)>;

/// Two lengths before key and value.
const HEADER_BYTES: u64 = 16;
/// Threads that can log at the same time.
const LANE_COUNT: usize = 16;
/// Far more than the longest record that is measured, and small compared with a store.
const LANE_BYTES: u64 = 4 << 20;

/// The log.
#[derive(Debug)]
pub struct Wal {
    medium: WalMedium,
    /// The length written in each lane. Only the holder of the lock uses the lane.
    lanes: [Mutex<u64>; LANE_COUNT],
    next: AtomicUsize,
}

impl Wal {
    /// The length of the longest record.
    pub const RECORD_BYTES_MAX: u64 = LANE_BYTES;

    /// Returns the length of the record of a put: complete lines.
    #[must_use]
    pub const fn record_bytes(key_bytes: u64, value_bytes: u64) -> u64 {
        (HEADER_BYTES + key_bytes + value_bytes).next_multiple_of(LINE_BYTES)
    }

    /// Creates a log in the new file `path`.
    ///
    /// # Errors
    /// If the file cannot be created or mapped.
    pub fn create(path: &Path, latency: Latency) -> Result<Wal, MapError> {
        let file = Mapped::create(path, LANE_COUNT as u64 * LANE_BYTES, MapOptions::default())?;
        let no_memory = || MapError::Io {
            path: path.to_owned(),
            source: io::ErrorKind::OutOfMemory.into(),
            doing: "emulate the memory of",
        };
        let delays = Delays::new(latency, &HostDram).ok_or_else(no_memory)?;
        let medium = Probed::with_probe(file, (delays, PersistCounts::default()));
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
        // SAFETY: only this thread uses the lane while it holds its lock, and nothing refers into it; the record ends
        // within it.
        unsafe { self.medium.stream(at, &[&header, key, value]) };
        *written += record_bytes;
        let ticket = self.medium.commit(Level::Strongest);
        self.medium.wait(ticket)?;
        Ok(())
    }

    /// Returns a lane that no other thread uses, or the next one.
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
