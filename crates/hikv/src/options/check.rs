//! Limits of options. The error names the value and its limit.

use std::time::Duration;

use super::{Options, REGION_BYTES_MAX};
use crate::OpenError;

/// The largest size that the cache's words can represent.
const READ_CACHE_BYTES_MAX: u64 = 1 << 37;
/// The number of writers that can leave a copy to another thread at the same time.
const READ_CACHE_THREADS_MAX: usize = 16;
/// The least limit of memory: the buffers of the log and of checkpoints, and the pages of many threads.
pub(crate) const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// More threads would only sleep and poll for work.
const BACKGROUND_THREADS_LIMIT: usize = 256;
/// The total capacity of the queues of the ordered index. Each change occupies a line of 64 bytes from the start.
const ORDER_CHANGES_MAX: usize = 1 << 22;
/// A longer interval amounts to syncing on request.
const SYNC_INTERVAL_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest delay of a persist or an access: no memory is slower.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// More than any processor's cache: its tags take 2 GiB.
const EMULATED_CACHE_BYTES_MAX: u64 = 16 << 30;

impl Options {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        self.check_sizes()?;
        self.check_times()?;
        self.check_read_cache()?;
        self.engine.map_or(Ok(()), |engine| self.check_engine(engine))
    }

    /// Checks options that size an allocation or count threads: beyond their limits they would end the process.
    fn check_sizes(&self) -> Result<(), OpenError> {
        if !self.tuning.partition_count.is_power_of_two() || self.tuning.partition_count > 256 {
            return refused(format!("{} partitions: must be a power of two up to 256", self.tuning.partition_count));
        }
        if let Some(ratio) = self.tuning.compact_above.filter(|ratio| !ratio.is_finite() || *ratio < 1.0) {
            return refused(format!("compaction above {ratio}: the ratio must be at least 1"));
        }
        if let Some((count, bound)) = self.tuning.order_queues {
            if count == 0 || !bound.is_power_of_two() {
                return refused(format!("{count} queues of {bound}: at least one, of a power of two, is needed"));
            }
            if count.saturating_mul(bound) > ORDER_CHANGES_MAX {
                return refused(format!(
                    "{count} queues of {bound}: the limit is {ORDER_CHANGES_MAX} changes in total"
                ));
            }
        }
        if let Some(count) = self.tuning.background_threads.filter(|count| *count > BACKGROUND_THREADS_LIMIT) {
            return refused(format!("{count} background threads: the limit is {BACKGROUND_THREADS_LIMIT}"));
        }
        #[cfg(feature = "ink")]
        if let Some(order) = self.tuning.tree_order.filter(|order| !engine_ink::ORDERS.contains(order)) {
            return refused(format!("a tree of order {order}: must be one of {:?}", engine_ink::ORDERS));
        }
        if let Some(bytes) = self.region_bytes_max.filter(|&bytes| bytes > REGION_BYTES_MAX) {
            return refused(format!("a region of {bytes} bytes (region_bytes_max): the limit is {REGION_BYTES_MAX}"));
        }
        self.check_memory()
    }

    fn check_memory(&self) -> Result<(), OpenError> {
        let Some(bytes) = self.memory_bytes_max else { return Ok(()) };
        if bytes < MEMORY_BYTES_MIN {
            return refused(format!(
                "{bytes} bytes of memory (memory_bytes_max): at least {MEMORY_BYTES_MIN} are needed"
            ));
        }
        if self.read_cache_bytes > bytes / 2 {
            let cache_bytes = self.read_cache_bytes;
            return refused(format!(
                "a read cache of {cache_bytes} bytes: at most half of the memory, {bytes} bytes (memory_bytes_max)"
            ));
        }
        Ok(())
    }

    /// Refuses a limit of memory for a store without a journal, whose memory is the storage.
    pub(crate) fn check_without_journal(&self, medium: &str) -> Result<(), OpenError> {
        match self.memory_bytes_max {
            None => Ok(()),
            Some(_) if self.is_memory_optional => Ok(()),
            Some(bytes) => refused(format!(
                "{bytes} bytes of memory (memory_bytes_max): a store on {medium} without a journal has no limit of memory"
            )),
        }
    }

    fn check_times(&self) -> Result<(), OpenError> {
        let times = [
            ("a sync interval", self.sync_interval, SYNC_INTERVAL_MAX),
            ("a delay of persists", self.emulation.persist_delay, DELAY_MAX),
            ("a delay of reads", self.emulation.read_delay, DELAY_MAX),
            ("a delay of blocks that are read", self.emulation.block_delays.read, DELAY_MAX),
            ("a delay of blocks that are persisted", self.emulation.block_delays.persist, DELAY_MAX),
            ("a read of memory", self.emulation.block_delays.memory_read, DELAY_MAX),
        ];
        let cache_bytes = self.emulation.block_delays.cache_bytes;
        if cache_bytes > EMULATED_CACHE_BYTES_MAX {
            return refused(format!(
                "an emulated cache of {cache_bytes} bytes: the limit is {EMULATED_CACHE_BYTES_MAX}"
            ));
        }
        match times.into_iter().find(|(_, time, max)| time > max) {
            Some((what, time, max)) => refused(format!("{what} of {time:?}: the limit is {max:?}")),
            None => Ok(()),
        }
    }

    fn check_read_cache(&self) -> Result<(), OpenError> {
        let (bytes, count) = (self.read_cache_bytes, self.tuning.read_cache_threads);
        if bytes > READ_CACHE_BYTES_MAX {
            return refused(format!("a read cache of {bytes} bytes: the limit is {READ_CACHE_BYTES_MAX}"));
        }
        if count > READ_CACHE_THREADS_MAX {
            return refused(format!("{count} threads for a read cache: the limit is {READ_CACHE_THREADS_MAX}"));
        }
        if count > 0 && bytes == 0 {
            return refused("threads for a read cache of 0 bytes: set read_cache_bytes as well".to_owned());
        }
        Ok(())
    }
}

fn refused(what: String) -> Result<(), OpenError> {
    Err(OpenError::Option { what })
}
