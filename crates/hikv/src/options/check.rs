//! Options that no store can be opened with: the error names the value and its limit.

use std::time::Duration;

use super::{Options, REGION_BYTES_MAX};
use crate::OpenError;

/// What the cache's words have room for.
const READ_CACHE_BYTES_MAX: u64 = 1 << 37;
/// As many writers as can leave a copy to another thread at once.
const READ_CACHE_THREADS_MAX: usize = 16;
/// Threads that only sleep and look for work.
const BACKGROUND_THREADS_LIMIT: usize = 256;
/// Changes that the queues of the order hold together: each takes a line of 64 bytes, at once.
const ORDER_CHANGES_MAX: usize = 1 << 22;
/// A store that syncs less often is one that syncs on request.
const SYNC_INTERVAL_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Of a persist or of an access: no memory is slower than that.
const DELAY_MAX: Duration = Duration::from_secs(1);

impl Options {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        self.check_sizes()?;
        self.check_times()?;
        self.check_read_cache()?;
        self.engine.map_or(Ok(()), |engine| self.check_engine(engine))
    }

    /// What sizes an allocation, or counts threads, has a limit: a number beyond it would end the process.
    fn check_sizes(&self) -> Result<(), OpenError> {
        if !self.partition_count.is_power_of_two() || self.partition_count > 256 {
            return refused(format!("{} partitions: a power of two up to 256 is wanted", self.partition_count));
        }
        if let Some(ratio) = self.compact_above.filter(|ratio| !ratio.is_finite() || *ratio < 1.0) {
            return refused(format!("compaction above {ratio}: a ratio of 1 or more is wanted"));
        }
        if let Some((count, bound)) = self.order_queues {
            if count == 0 || !bound.is_power_of_two() {
                return refused(format!("{count} queues of {bound}: one is wanted at least, of a power of two"));
            }
            if count.saturating_mul(bound) > ORDER_CHANGES_MAX {
                return refused(format!("{count} queues of {bound}: the limit is {ORDER_CHANGES_MAX} changes in all"));
            }
        }
        if let Some(count) = self.background_threads.filter(|count| *count > BACKGROUND_THREADS_LIMIT) {
            return refused(format!("{count} background threads: the limit is {BACKGROUND_THREADS_LIMIT}"));
        }
        #[cfg(feature = "ink")]
        if let Some(order) = self.tree_order.filter(|order| !engine_ink::ORDERS.contains(order)) {
            return refused(format!("a tree of order {order}: one of {:?} is wanted", engine_ink::ORDERS));
        }
        if let Some(bytes) = self.region_bytes_max.filter(|&bytes| bytes > REGION_BYTES_MAX) {
            return refused(format!("a region of {bytes} bytes (region_bytes_max): the limit is {REGION_BYTES_MAX}"));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), OpenError> {
        let times = [
            ("a sync interval", self.sync_interval, SYNC_INTERVAL_MAX),
            ("a delay of persists", self.persist_delay, DELAY_MAX),
            ("a delay of reads", self.read_delay, DELAY_MAX),
            ("a delay of blocks that are read", self.block_delays.read, DELAY_MAX),
            ("a delay of blocks that are persisted", self.block_delays.persist, DELAY_MAX),
        ];
        match times.into_iter().find(|(_, time, max)| time > max) {
            Some((what, time, max)) => refused(format!("{what} of {time:?}: the limit is {max:?}")),
            None => Ok(()),
        }
    }

    fn check_read_cache(&self) -> Result<(), OpenError> {
        let (bytes, count) = (self.read_cache_bytes, self.read_cache_threads);
        if bytes > READ_CACHE_BYTES_MAX {
            return refused(format!("a read cache of {bytes} bytes: the limit is {READ_CACHE_BYTES_MAX}"));
        }
        if count > READ_CACHE_THREADS_MAX {
            return refused(format!("{count} threads for a read cache: the limit is {READ_CACHE_THREADS_MAX}"));
        }
        if count > 0 && bytes == 0 {
            return refused("threads for a read cache of 0 bytes".to_owned());
        }
        Ok(())
    }
}

fn refused(what: String) -> Result<(), OpenError> {
    Err(OpenError::Option { what })
}
