//! A file of the journal whose failures end the journal.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{MediumError, TRUNCATED_ERRNO};

use crate::error::full_or_failed;
use crate::health::Health;
use crate::{File, canary};

/// The base or the log. A failed write or sync poisons the journal.
#[derive(Debug)]
pub(crate) struct Guarded<F> {
    file: F,
    health: Arc<Health>,
    sync_count: AtomicU64,
}

impl<F: File> Guarded<F> {
    pub(crate) fn new(file: F, health: &Arc<Health>) -> Guarded<F> {
        Guarded { file, health: Arc::clone(health), sync_count: AtomicU64::new(0) }
    }

    /// Returns the file.
    #[inline(always)]
    pub(crate) fn file(&self) -> &F {
        &self.file
    }

    #[inline(always)]
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Returns the result of an operation; an error poisons the journal.
    pub(crate) fn guard<T>(&self, done: io::Result<T>) -> Result<T, MediumError> {
        done.map_err(|error| self.health.poison(&error))
    }

    /// Allocates a range of the base, for a region of `region_bytes`. If this fails, the journal goes on without the
    /// space. Exception: a truncated file ends the journal.
    pub(crate) fn allocate(&self, range: Range<u64>, region_bytes: u64) -> Result<(), MediumError> {
        self.file.allocate(range).map_err(|error| match error.raw_os_error() {
            Some(TRUNCATED_ERRNO) => self.health.poison(&error),
            _ => full_or_failed(region_bytes)(error),
        })
    }

    /// Makes writes to the file durable. Never repeated after a failure: the kernel has dropped the pages that it
    /// could not write.
    pub(crate) fn sync(&self) -> Result<(), MediumError> {
        self.health.check()?;
        let synced = self.file.sync();
        let synced = if self.file.breaks(canary::SYNC_RETRIED) { synced.or_else(|_| self.file.sync()) } else { synced };
        self.guard(synced)?;
        self.sync_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of syncs so far.
    pub(crate) fn sync_count(&self) -> u64 {
        self.sync_count.load(Ordering::Relaxed)
    }
}
